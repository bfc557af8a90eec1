import { expect, test } from 'vitest'

import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { nest } from '../approvals/support/nested-agents.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import type { TestBridge } from '../approvals/support/test-bridge.ts'
import type { SocketClient } from '../sockets/support/socket-client.ts'
import { defer } from '../support/agents.ts'
import { textOf } from '../support/chat-probe.ts'
import { joinLive, openLiveTestBridge, whole } from './support/live-test-bridge.ts'

/** Lets the request of the next approval wait. */
function holdRequest({ store: { approvals } }: TestBridge) {
  const [reached, released] = [defer<string>(), defer()]
  const insert = approvals.insert.bind(approvals)
  approvals.insert = async (...given) => {
    approvals.insert = insert
    reached.resolve(given[0].id)
    await released.promise
    return insert(...given)
  }
  return { reached: reached.promise, release: () => released.resolve() }
}

interface Removal {
  readonly testBridge: TestBridge
  readonly client: SocketClient
}

const AGAIN = {
  id: 'chat-1',
  trigger: 'regenerate-message',
  messages: [{ id: 'u-1', role: 'user', parts: [{ type: 'text', text: '[[say Again.]]' }] }],
}
const REMOVALS = [
  {
    what: 'repeated',
    remove: async ({ client }: Removal) => {
      client.send({ type: 'send', requestId: 'r2', ...AGAIN })
      expect(await whole(client, 'r2')).toBe('Again.')
    },
    after: ['[[say Again.]]', 'Again.'],
  },
  {
    what: 'deleted',
    remove: async ({ testBridge }: Removal) => {
      expect((await testBridge.page().delete()).status).toBeLessThan(300)
    },
    after: [],
  },
]
const CALLS = [
  { call: 'a call', text: callPayment(50) },
  {
    call: 'a call inside an agent',
    text: `[[call travel ${JSON.stringify({ request: callPayment(50) })}]]`,
  },
]

test.each(
  REMOVALS.flatMap(({ what, ...removal }) =>
    CALLS.map(({ call, text }) => [call, what, { text, ...removal }] as const),
  ),
)(
  '[TU1981] %s that requests its approval after its message was %s leaves no open approval',
  async (_call, _what, { text, remove, after }) => {
    await using testBridge = await openLiveTestBridge({
      agent: (model, tools) => nest(model, tools, { outer: tools }),
    })
    await using client = await joinLive(testBridge)
    const request = holdRequest(testBridge)
    const messages = [{ id: 'u-1', role: 'user', parts: [{ type: 'text', text }] }]
    client.send({ type: 'send', requestId: 'r1', id: 'chat-1', messages })
    const approvalId = await request.reached
    await remove({ testBridge, client })
    request.release()
    const { approvals, sessions } = testBridge.store
    const stateOf = async () => (await approvals.get(approvalId))?.state.name
    await expect.poll(stateOf).toBe('cancelled')
    const page = testBridge.page()
    expect(await page.inbox()).toEqual([])
    expect((await page.messages()).map(textOf)).toEqual(after)
    const key = { appName: 'adk-stream-protocol', userId: 'hanako', sessionId: 'chat-1' }
    const { events = [] } = (await sessions.getSession(key)) ?? {}
    expect(JSON.stringify(events)).not.toContain('process_payment')
  },
)

test('[TU1981] a call whose message is removed while the policy is evaluated does not run, and requests no approval', async () => {
  const [judging, judged, ended] = [defer(), defer(), defer()]
  let isJudged = false
  await using testBridge = await openLiveTestBridge({
    openStore: async () => {
      const store = await openSqliteStore({ path: ':memory:' })
      const getSession = store.sessions.getSession.bind(store.sessions)
      store.sessions.getSession = (request) =>
        getSession(request).finally(() => isJudged && ended.resolve())
      return store
    },
    tools: (wallet) => [paymentTool(wallet, { gated: false, before: () => ended.resolve() })],
    approvals: {
      process_payment: async () => {
        judging.resolve()
        await judged.promise
        return false
      },
    },
  })
  await using client = await joinLive(testBridge)
  const parts = [{ type: 'text', text: callPayment(50) }]
  const messages = [{ id: 'u-1', role: 'user', parts }]
  client.send({ type: 'send', requestId: 'r1', id: 'chat-1', messages })
  await judging.promise
  client.send({ type: 'send', requestId: 'r2', ...AGAIN })
  expect(await whole(client, 'r2')).toBe('Again.')
  isJudged = true
  judged.resolve()
  // The server reads the chat, or the call runs.
  await ended.promise
  const page = testBridge.page()
  expect((await page.messages()).map(textOf)).toEqual(['[[say Again.]]', 'Again.'])
  expect(await page.inbox()).toEqual([])
  expect(testBridge.wallet.payments).toEqual([])
})
