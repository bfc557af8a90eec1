import { setTimeout as delay } from 'node:timers/promises'

import type { BaseSessionService, Context } from '@google/adk'
import { LlmAgent } from '@google/adk'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'

import { isLong } from '../../../../test/support/long-run.ts'
import { takeTurns } from '../../../../test/support/take-turns.ts'
import {
  type ApprovingChat,
  approvingClients,
  liveClient,
} from '../approvals/support/approving-chat.ts'
import { expectRecord } from '../approvals/support/expect-record.ts'
import { TestBridge, type TestBridgeOptions } from '../approvals/support/test-bridge.ts'
import type { Page } from '../approvals/support/page.ts'
import { ask, nest, pay, play, say } from '../approvals/support/nested-agents.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { tool } from '../support/agents.ts'
import { toolParts } from '../support/chat-probe.ts'
import { startLibSql, startPostgres, type Databases } from './support/databases.ts'

const PAY = `${callPayment(50)}[[then]][[say Paid.]]`
const LIFE = ['requested', 'approved', 'started', 'succeeded']
const [stock] = approvingClients
const stockOnly = stock ? [stock] : []

const payAndLook: TestBridgeOptions['tools'] = (wallet) => [
  paymentTool(wallet),
  tool('look', () => ({ seen: true })),
]

const withTeller: TestBridgeOptions['agent'] = (model, tools) => {
  const teller = new LlmAgent({ name: 'teller', model, description: 'Pays.', tools })
  return new LlmAgent({ name: 'assistant', model, subAgents: [teller] })
}

// The scenarios of the approval suites that depend most on the order of stored events.
describe.each([
  // PostgreSQL has the other client. `npm run test:long` has both here.
  ['SQLite', startLibSql, isLong ? [...stockOnly, liveClient] : [liveClient]],
  ['PostgreSQL', startPostgres, stockOnly],
] as const)('ADK sessions in %s', (name, start, clients) => {
  let databases: Databases
  beforeAll(async () => {
    databases = await start()
  })
  afterAll(() => databases.stop())

  /** Runs a scenario on an empty database, and checks that nothing is written after its end. */
  async function scenario(
    options: TestBridgeOptions,
    act: (testBridge: TestBridge) => Promise<void>,
  ): Promise<void> {
    const { service, close } = await databases.open()
    try {
      await using testBridge = await TestBridge.open({
        limits: { sweepMs: 20 },
        ...options,
        sessionService: service,
      })
      await act(testBridge)
      const before = await countEvents(service)
      // Several sweeps: each would write again what it cannot complete.
      await delay(100)
      expect(await countEvents(service)).toBe(before)
    } finally {
      await close()
    }
  }

  describe.each(clients)('$name', (client) => {
    const it = takeTurns({ group: name === 'SQLite' ? 0 : 1, groups: 2 })

    it.each([true, false])('[AP113] a call is decided: %s', async (approved) => {
      await scenario({}, async (testBridge) => {
        const page = testBridge.page()
        const chat = await page.open(client)
        await chat.send(PAY)
        const [id = ''] = chat.asked
        await chat.decide(approved)
        expect(chat.text).toBe('Paid.')
        expect(testBridge.wallet.payments).toHaveLength(approved ? 1 : 0)
        expect(await page.history(id)).toEqual(approved ? LIFE : ['requested', 'denied'])
        expect(page.sent).toHaveLength(2)
        await untilRecord(page, chat)
        await chat.send('[[say Next.]]')
        expect(chat.text).toBe('Next.')
      })
    })

    test.skipIf(client.live)('[AP113] calls inside agents used as tools are decided', async () => {
      const respond = play({
        planner: [[ask('travel')], [say('All done.')]],
        travel: [[pay(5), pay(7)], [say('Booked.')]],
      })
      await scenario({ agent: nest, respond }, async (testBridge) => {
        const page = testBridge.page()
        const chat = await page.open(client)
        await chat.send('Go.')
        await chat.decide(true, false)
        expect(chat.text).toBe('All done.')
        expect(testBridge.wallet.payments).toHaveLength(1)
        await untilRecord(page, chat)
      })
    })

    it('[AP113] calls of one step are decided one by one, beside one that needs no approval', async () => {
      await scenario({ tools: payAndLook }, async (testBridge) => {
        const page = testBridge.page()
        const chat = await page.open(client)
        const look = '[[call look {}]]'
        await chat.send(`${callPayment(1, 'A')}${look}${callPayment(2, 'B')}[[then]][[say Half.]]`)
        const [first = '', second = ''] = chat.asked
        await page.decide(first, { approved: true })
        await page.untilState(first, 'succeeded')
        await page.decide(second, { approved: false, reason: 'no' })
        await page.untilMessages((messages) => JSON.stringify(messages.at(-1)).includes('Half.'))
        expect(testBridge.wallet.payments).toEqual([{ amount: 1, recipient: 'A' }])
        expect(testBridge.results).toMatchObject([
          { success: true },
          { seen: true },
          { status: 'denied' },
        ])
        await untilRecord(page, await page.open(client))
      })
    })

    it('[AP113] a tool that asks by itself runs once when it is approved', async () => {
      let runs = 0
      const asking = tool('process_payment', (_args: unknown, context?: Context) => {
        if (!context?.toolConfirmation) {
          context?.requestConfirmation({ hint: 'Sure?' })
          return { status: 'asking' }
        }
        runs += 1
        return { paid: true }
      })
      await scenario({ tools: () => [asking] }, async (testBridge) => {
        const page = testBridge.page()
        const chat = await page.open(client)
        await chat.send(PAY)
        await chat.decide(true)
        expect(chat.text).toBe('Paid.')
        expect(runs).toBe(1)
        await untilRecord(page, chat)
      })
    })

    it('[AP113] a sub-agent asks, the server restarts, and the call is approved', async () => {
      await scenario({ agent: withTeller }, async (testBridge) => {
        const page = testBridge.page()
        const before = await page.open(client)
        await before.send(`[[call transfer_to_agent {"agentName":"teller"}]][[then]]${PAY}`)
        await testBridge.restart()
        const chat = await page.open(client)
        await chat.decide(true)
        expect(chat.text).toBe('Paid.')
        expect(testBridge.wallet.payments).toHaveLength(1)
        expect(toolParts(chat.lastMessage)).toMatchObject([{ state: 'output-available' }])
        await untilRecord(page, chat)
      })
    })
  })
})

/** The record is complete when the turn has been stored, which takes some time. */
async function untilRecord(page: Page, chat: ApprovingChat): Promise<void> {
  await vi.waitFor(() => expectRecord(page, chat), { timeout: 120_000, interval: 20 })
}

async function countEvents(service: BaseSessionService): Promise<number> {
  const session = await service.getSession({
    appName: 'adk-stream-protocol',
    userId: 'hanako',
    sessionId: 'chat-1',
  })
  return session?.events.length ?? 0
}
