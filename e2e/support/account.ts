import { join } from 'node:path'

import Database from 'libsql'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { z } from 'zod'

import { openSqliteWallets } from '../../apps/demo/src/agent/wallet/sqlite-wallets.ts'
import type { TestDemo } from './test-demo.ts'

const History = z.object({
  approval: z.object({ state: z.string() }),
  history: z.array(z.looseObject({ type: z.string() })),
})
const Payment = z.object({ recipient: z.string(), amount_cents: z.number() })
const Pending = z.object({ approvals: z.array(z.object({ id: z.string() })) })

/** Reads the wallet and the approvals of the user of a page from the server. */
export function readAccount(testDemo: TestDemo, page: Page) {
  const get = async (path: string): Promise<unknown> =>
    (await page.request.get(testDemo.demo.url + path)).json()
  const readPrincipal = async (): Promise<string> => {
    const cookies = await page.context().cookies()
    const principal = cookies[0]?.value.split('.')[0] ?? ''
    expect(principal).not.toBe('')
    return principal
  }
  const file = join(testDemo.dataDir, 'wallets.db')
  return {
    /** The balance in dollars. It starts at 1000. */
    balance: async (): Promise<number> => {
      const principal = await readPrincipal()
      using wallets = openSqliteWallets(file)
      return wallets.balance(principal) / 100
    },
    /** The payments in their order, such as `Alice 50`. */
    payments: async (): Promise<string[]> => {
      const principal = await readPrincipal()
      const database = new Database(file, { readonly: true })
      try {
        const rows = database.prepare(PAYMENTS).all(principal)
        return rows.map((row) => {
          const { recipient, amount_cents: cents } = Payment.parse(row)
          return `${recipient} ${cents / 100}`
        })
      } finally {
        database.close()
      }
    },
    /** The ids of the pending approvals. */
    pendingApprovals: async (): Promise<string[]> =>
      Pending.parse(await get('/approvals')).approvals.map(({ id }) => id),
    /** The types of the audit entries of an approval. */
    history: async (id: string): Promise<string[]> =>
      History.parse(await get(`/approvals/${id}`)).history.map(({ type }) => type),
  }
}

const PAYMENTS = 'SELECT recipient, amount_cents FROM payments WHERE user_id = ? ORDER BY rowid'
