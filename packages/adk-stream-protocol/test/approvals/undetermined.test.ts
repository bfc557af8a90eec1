import type { RunAsyncToolRequest } from '@google/adk'
import { BasePlugin, BaseTool, FunctionTool } from '@google/adk'
import { describe, expect } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { z } from 'zod'

import { UNDETERMINED } from '../../src/agent/call-responses.ts'
import { toolParts } from '../support/chat-probe.ts'
import { approvingClients, liveClient } from './support/approving-chat.ts'
import { TestBridge } from './support/test-bridge.ts'
import { callPayment, paymentTool, type Wallet } from './support/payments.ts'

/** A payment that is not a FunctionTool, and asks `check` whether a person must approve it. */
class CheckedPayment extends BaseTool {
  readonly #wallet: Wallet
  readonly #check: () => unknown

  constructor(wallet: Wallet, check: () => unknown) {
    super({ name: 'process_payment', description: 'Pays somebody.' })
    this.#wallet = wallet
    this.#check = check
  }

  override _getDeclaration() {
    return { name: this.name, description: this.description }
  }

  override async checkRequireConfirmation(): Promise<boolean> {
    // A tool in JavaScript may return anything.
    return (await this.#check()) as boolean
  }

  override async runAsync({ args }: RunAsyncToolRequest) {
    return { balance: this.#wallet.pay({ amount: Number(args['amount']), recipient: '花子' }) }
  }
}

const SECRET = 'connect ECONNREFUSED postgres://admin:hunter2@db.internal'
const clients = [...approvingClients.slice(0, 1), liveClient]

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it('[AP110] a tool that fails to say whether it needs approval does not run', async () => {
    await using testBridge = await TestBridge.open({
      tools: (wallet) => [new CheckedPayment(wallet, () => Promise.reject(new Error(SECRET)))],
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]][[say Sorry.]]`)
    expect(testBridge.wallet.payments).toEqual([])
    expect(chat.asked).toEqual([])
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { state: 'output-error', errorText: UNDETERMINED.error },
    ])
    expect(chat.text).toBe('Sorry.')
    expect(testBridge.results).toEqual([UNDETERMINED])
    expect(testBridge.errors.map(String).join()).toContain(SECRET)
    expect(
      JSON.stringify([chat.messages, await page.messages(), testBridge.lastPrompt]),
    ).not.toContain('hunter2')
  })

  it.each([undefined, null, 'no', 0])(
    '[AP110] a tool whose `requireConfirmation` returns %j requests approval',
    async (answer) => {
      await using testBridge = await TestBridge.open({
        tools: (wallet) => [new CheckedPayment(wallet, () => answer)],
      })
      const chat = await testBridge.page().open(client)
      await chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
      expect(chat.asked).toHaveLength(1)
      expect(testBridge.wallet.payments).toEqual([])
    },
  )

  it('[AP110] arguments that do not match the schema are described to the model, and nothing runs', async () => {
    let runs = 0
    await using testBridge = await TestBridge.open({
      tools: () => [
        new FunctionTool({
          name: 'process_payment',
          description: 'Pays somebody.',
          parameters: z.object({ amount: z.number() }),
          requireConfirmation: ({ amount }) => amount > 10,
          execute: () => {
            runs += 1
            return {}
          },
        }),
      ],
    })
    const chat = await testBridge.page().open(client)
    await chat.send('[[call process_payment {"amount":"much"}]][[then]][[say Sorry.]]')
    expect(chat.text).toBe('Sorry.')
    expect(runs).toBe(0)
    expect(JSON.stringify(testBridge.results)).toContain('amount: ')
  })

  it('[AP110] a callback of a plugin that throws before a tool keeps the tool from running', async () => {
    class Broken extends BasePlugin {
      override beforeToolCallback(): Promise<undefined> {
        return Promise.reject(new Error('the guard is broken'))
      }
    }
    await using testBridge = await TestBridge.open({
      plugins: [new Broken('broken')],
      tools: (wallet) => [paymentTool(wallet, { gated: false })],
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]][[say Sorry.]]`)
    expect(testBridge.wallet.payments).toEqual([])
    await page.open(client)
  })
})
