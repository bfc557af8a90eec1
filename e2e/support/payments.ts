import { join } from 'node:path'

import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { z } from 'zod'

import { openSqliteWallets } from '../../apps/demo/src/agent/wallet/sqlite-wallets.ts'
import type { World } from './world.ts'

const History = z.object({
  approval: z.object({ state: z.string() }),
  history: z.array(z.looseObject({ type: z.string() })),
})
const Pending = z.object({ approvals: z.array(z.object({ id: z.string() })) })

/** What the server knows of the reader of a page: their money, and what was decided and done. */
export function readBooks(world: World, page: Page) {
  const get = async (path: string): Promise<unknown> =>
    (await page.request.get(world.demo.url + path)).json()
  return {
    /** What is left of the 1000 dollars. */
    balance: async (): Promise<number> => {
      const cookies = await page.context().cookies()
      const principal = cookies[0]?.value.split('.')[0] ?? ''
      expect(principal).not.toBe('')
      using wallets = openSqliteWallets(join(world.dataDir, 'wallets.db'))
      return wallets.balance(principal) / 100
    },
    /** The ids of what waits for a decision. */
    pending: async (): Promise<string[]> =>
      Pending.parse(await get('/approvals')).approvals.map(({ id }) => id),
    /** What happened to an approval, one word per entry of the audit. */
    history: async (id: string): Promise<string[]> =>
      History.parse(await get(`/approvals/${id}`)).history.map(({ type }) => type),
  }
}
