import { expect, test } from 'vitest'

import { isRefusal } from '../../src/approvals/approval.ts'
import { Ledger } from '../../src/approvals/ledger.ts'
import { nextApproval } from '../../src/approvals/next-approval.ts'
import { ProtocolError } from '../../src/protocol/errors.ts'
import type { LogEntry } from '../../src/server/operations/operations.ts'
import { createLogThrottle, Operations } from '../../src/server/operations/operations.ts'
import { openSqliteStore, type Store } from '../../src/store/index.ts'
import { StoreError } from '../../src/store/store-error.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { hanako, requestOf, taken } from '../ledger/support/fixture.ts'
import { joinLive, openLiveTestBridge } from '../live/support/live-test-bridge.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { assistant, defer, tool } from '../support/agents.ts'
import { TestMetrics } from '../support/metrics.ts'
import { serve } from '../support/serve.ts'

const POLLING = { timeout: 120_000, interval: 20 }

const ask = (text: string, id = 'chat-1') => ({
  id,
  messages: [{ id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }],
})

test('[OB300] metrics count turns, their chunks and their tools by outcome', async () => {
  await using metrics = new TestMetrics()
  const tools = [
    tool('look', () => ({ seen: true })),
    tool('fall', () => {
      throw new Error('It fell.')
    }),
  ]
  await using server = await serve({ agent: (model) => assistant(model, { tools }) })
  const browser = server.browser()
  await (await browser.say('[[call look {}]][[call fall {}]][[then]][[say Done.]]')).text()
  await (await browser.say('[[error 400 INVALID_ARGUMENT no]]', 'chat-2')).text()
  await expect
    .poll(() => metrics.read('turn.ended'), POLLING)
    .toEqual({
      completed: 1,
      'failed model-refused': 1,
    })
  expect(await metrics.read('turn.duration')).toEqual({ completed: 1, failed: 1 })
  expect(await metrics.read('turn.time_to_first_chunk')).toEqual({ '': 1 })
  expect(await metrics.read('turn.chunks')).toEqual({ '': server.reported.length })
  expect(await metrics.read('tool.ended')).toEqual({ 'look succeeded': 1, 'fall failed': 1 })
  // A turn holds its chat for a moment after it has ended.
  await expect.poll(() => metrics.read('turn.active'), POLLING).toEqual({ '': 0 })
})

test('[OB300] metrics count approvals, and the tools that ran after them', async () => {
  await using metrics = new TestMetrics()
  await using testBridge = await TestBridge.open()
  const page = testBridge.page()
  for (const [id, approved] of [
    ['chat-1', true],
    ['chat-2', false],
  ] as const) {
    await page.post(ask(`${callPayment(50)}[[then]][[say Fine.]]`, id))
    expect(await metrics.read('approval.pending')).toEqual({ '': 1 })
    const [asked] = await page.inbox()
    await page.decide(asked?.id ?? '', { approved })
    await page.untilMessages((messages) => JSON.stringify(messages).includes('Fine.'), id)
  }
  expect(await metrics.read('approval.requested')).toEqual({ process_payment: 2 })
  expect(await metrics.read('approval.ended')).toEqual({
    'process_payment approved': 1,
    'process_payment denied': 1,
  })
  expect(await metrics.read('approval.time_to_decision')).toEqual({
    'process_payment approved': 1,
    'process_payment denied': 1,
  })
  expect(await metrics.read('approval.pending')).toEqual({ '': 0 })
  expect(await metrics.read('tool.ended')).toEqual({ 'process_payment succeeded': 1 })
  expect(await metrics.read('turn.ended')).toEqual({ paused: 2, completed: 2 })
})

test('[OB301] metrics have names with a prefix, units, and no ids or content', async () => {
  await using metrics = new TestMetrics()
  await using testBridge = await TestBridge.open()
  const page = testBridge.page()
  await page.post(ask(callPayment(50, 'argument-canary'), 'chat-canary'))
  const [asked] = await page.inbox()
  await page.decide(asked?.id ?? '', { approved: true, reason: 'reason-canary' })
  await page.untilState(asked?.id ?? '', 'succeeded')
  const all = await metrics.collect()
  expect(all.length).toBeGreaterThan(10)
  for (const { name, unit, attributes } of all) {
    expect(name).toMatch(/^adk_stream_protocol\.[a-z_.]+$/)
    expect(unit).toMatch(/^(?:s|\{[a-z]+\})$/)
    expect(['gen_ai.tool.name', 'outcome', 'error.type', 'state']).toEqual(
      expect.arrayContaining(Object.keys(attributes)),
    )
  }
  const text = JSON.stringify(all)
  for (const secret of ['canary', 'hanako', asked?.id ?? '']) expect(text).not.toContain(secret)
})

test('[OB302] metrics show what runs and what is open now', async () => {
  await using metrics = new TestMetrics()
  await using server = await serve({ recorded: false })
  const browser = server.browser()
  const reply = await browser.say('[[say One.]][[wait gate]][[say Two.]]')
  const feed = await browser.get('/events')
  await using socket = await SocketClient.open(server.url)
  const levels = async () => ({
    turns: await metrics.read('turn.active'),
    sockets: await metrics.read('socket.active'),
    feeds: await metrics.read('feed.active'),
    sessions: await metrics.read('live_session.active'),
  })
  const one = { '': 1 }
  expect(await levels()).toEqual({ turns: one, sockets: one, feeds: one, sessions: { '': 0 } })
  server.emulator.release('gate')
  await reply.text()
  await feed.body?.cancel()
  socket.socket.close()
  const none = { '': 0 }
  await expect
    .poll(levels, POLLING)
    .toEqual({ turns: none, sockets: none, feeds: none, sessions: none })
})

test('[OB302] the levels of all bridges of a process are added up, and a closed bridge adds nothing', async () => {
  await using metrics = new TestMetrics()
  await using first = await serve()
  await using second = await serve()
  const open = (server: typeof first) => server.browser().say('[[say One.]][[wait gate]]')
  const replies = [await open(first), await open(second)]
  expect(await metrics.read('turn.active')).toEqual({ '': 2 })
  await first.bridge.close({ drainMs: 0 })
  expect(await metrics.read('turn.active')).toEqual({ '': 1 })
  await second.bridge.close({ drainMs: 0 })
  expect(await metrics.read('turn.active')).toEqual({ '': 0 })
  await Promise.all(replies.map((reply) => reply.text()))
})

test('[OB302] metrics count open live sessions', async () => {
  await using metrics = new TestMetrics()
  await using testBridge = await openLiveTestBridge()
  await using client = await joinLive(testBridge)
  client.say('[[say Hello.]]')
  await client.next((frame) => JSON.stringify(frame).includes('Hello.'))
  expect(await metrics.read('live_session.active')).toEqual({ '': 1 })
})

/** Settles a call as another process does after the lease of its worker. */
async function loseCall({ approvals }: Store, approvalId: string): Promise<void> {
  const approval = await approvals.get(approvalId)
  if (approval?.state.name !== 'executing') throw new Error('it does not run')
  const { worker } = approval.state
  const lost = nextApproval(approval, { type: 'lose', worker }, await approvals.now())
  if (isRefusal(lost) || !(await approvals.replace(lost))) throw new Error('it is not lost')
}

test('[OB303] a turn that another process took over counts as a lost lease, and is logged as one', async () => {
  await using metrics = new TestMetrics()
  const [started, gate] = [defer(), defer()]
  const before = async () => {
    started.resolve()
    await gate.promise
  }
  const entries: LogEntry[] = []
  await using testBridge = await TestBridge.open({
    tools: (wallet) => [paymentTool(wallet, { before })],
    log: (entry) => entries.push(entry),
  })
  const page = testBridge.page()
  await page.post(ask(callPayment(50)))
  const [asked] = await page.inbox()
  await page.decide(asked?.id ?? '', { approved: true })
  await started.promise
  await loseCall(testBridge.store, asked?.id ?? '')
  gate.resolve()
  await expect.poll(() => metrics.read('lease.lost'), POLLING).toEqual({ '': 1 })
  expect(entries).toContainEqual(
    expect.objectContaining({ level: 'warn', event: 'lease.lost', chatId: 'chat-1' }),
  )
  expect(entries.map(({ event }) => event)).not.toContain('turn.failed')
})

test.each([
  ['unknown', false, 'call.unknown', 'error'],
  ['approved', true, 'call.recovered', 'warn'],
] as const)(
  '[OB303] a call of a crashed process that becomes %s is counted and logged',
  async (state, idempotent, event, level) => {
    await using metrics = new TestMetrics()
    const entries: LogEntry[] = []
    const operations = new Operations({ log: (entry) => entries.push(entry), onError: fail })
    await using store = await openSqliteStore({ path: ':memory:' })
    const options = { store: store.approvals, appName: 'demo', leaseMs: 0 }
    const [crashed, other] = [new Ledger(options), new Ledger(options)]
    other.onChange((approval, change) => operations.approvalChanged(approval, change))
    const request = requestOf({ id: 'a' })
    const { terms, ...call } = request
    const asked = taken(await crashed.request({ ...call, terms: { ...terms, idempotent } }))
    taken(await crashed.decide('a', { by: hanako, approved: true }))
    taken(await crashed.claim('a', call))
    expect((await other.recover()).map((one) => one.state.name)).toEqual([state])
    expect(entries).toMatchObject([{ level, event, approvalId: asked.id }])
    expect(await metrics.read(idempotent ? 'call.recovered' : 'tool.ended')).toEqual({
      [idempotent ? 'process_payment' : 'process_payment unknown']: 1,
    })
  },
)

test('[OB304] the log has an entry for each approval, failed turn, start and end, without content', async () => {
  const entries: LogEntry[] = []
  const testBridge = await TestBridge.open({ log: (entry) => entries.push(entry) })
  const page = testBridge.page()
  await page.post(ask(`${callPayment(50, 'argument-canary')}[[then]][[say reply-canary]]`))
  const [asked] = await page.inbox()
  const approvalId = asked?.id ?? ''
  await page.decide(approvalId, { approved: true, reason: 'reason-canary' })
  await page.untilMessages((messages) => JSON.stringify(messages).includes('reply-canary'))
  await page.post(ask('prompt-canary [[error 400 INVALID_ARGUMENT error-canary]]', 'chat-2'))
  await testBridge[Symbol.asyncDispose]()
  const call = { approvalId, chatId: 'chat-1', principalId: 'hanako', toolName: 'process_payment' }
  expect(entries).toMatchObject([
    { level: 'info', event: 'bridge.started' },
    { level: 'info', event: 'approval.requested', ...call },
    { level: 'info', event: 'approval.ended', outcome: 'approved', decidedBy: 'hanako', ...call },
    { level: 'error', event: 'turn.failed', code: 'model-refused', chatId: 'chat-2' },
    { level: 'info', event: 'bridge.closing' },
    { level: 'info', event: 'bridge.closed' },
  ])
  for (const { message } of entries) expect(message).toMatch(/^[A-Za-z].+\.$/)
  expect(JSON.stringify(entries)).not.toContain('canary')
})

test('[OB304] the log reports expired approvals and failed calls', async () => {
  const entries: LogEntry[] = []
  await using testBridge = await TestBridge.open({
    tools: (wallet) => [paymentTool(wallet, { before: () => fail(new Error('error-canary')) })],
    approvals: ({ args }) => ({ ...(args['amount'] === 1 && { deadlineMs: 1 }) }),
    log: (entry) => entries.push(entry),
  })
  const page = testBridge.page()
  await page.post(ask(callPayment(1)))
  const events = () => entries.map(({ event, outcome = '' }) => `${event} ${outcome}`.trim())
  await expect.poll(events, POLLING).toContain('approval.ended expired')
  await page.post(ask(callPayment(2), 'chat-2'))
  const [asked] = await page.inbox()
  await page.decide(asked?.id ?? '', { approved: true })
  await expect.poll(events, POLLING).toContain('call.failed')
  expect(JSON.stringify(entries)).not.toContain('canary')
})

test('[OB740] an approved call starts before the log entry of its decision', async () => {
  const order: string[] = []
  await using testBridge = await TestBridge.open({
    tools: (wallet) => [paymentTool(wallet, { before: () => void order.push('tool') })],
    log: ({ event }) => order.push(event),
  })
  const page = testBridge.page()
  await page.post(ask(callPayment(50)))
  const [asked] = await page.inbox()
  await page.decide(asked?.id ?? '', { approved: true })
  await expect.poll(() => order, POLLING).toContain('approval.ended')
  expect(order.indexOf('tool')).toBe(order.indexOf('approval.ended') - 1)
})

test('[OB305] the log reports refused origins, hosts and limits; metrics count every refusal', async () => {
  await using metrics = new TestMetrics()
  const entries: LogEntry[] = []
  await using server = await serve({
    limits: { maxSocketsPerPrincipal: 0, maxFeedsPerPrincipal: 0 },
    log: (entry) => entries.push(entry),
  })
  const browser = server.browser()
  const foreign = { origin: 'https://attacker.example' }
  expect((await browser.get('/chats', foreign)).status).toBe(403)
  expect((await browser.get('/chats', foreign)).status).toBe(403)
  expect((await browser.get('/events')).status).toBe(429)
  await expect(SocketClient.open(server.url, { headers: foreign })).rejects.toThrow('403')
  await expect(SocketClient.open(server.url)).rejects.toThrow('429')
  expect((await browser.get('/nothing')).status).toBe(404)
  expect(entries.slice(1)).toMatchObject([
    { level: 'warn', event: 'request.refused', code: 'forbidden-origin', count: 1 },
    { level: 'warn', event: 'request.refused', code: 'too-many-watchers', count: 1 },
    { level: 'warn', event: 'request.refused', code: 'too-many-sockets', count: 1 },
  ])
  expect(await metrics.read('request.refused')).toEqual({
    'forbidden-origin': 3,
    'too-many-watchers': 1,
    'too-many-sockets': 1,
    'not-found': 1,
  })
})

test('[OB305] repeated refusals of one kind are one entry in ten seconds, with their number', () => {
  let now = 0
  const count = createLogThrottle(() => now)
  const counts = () => [count('too-fast'), count('too-large')]
  expect(counts()).toEqual([1, 1])
  now = 9_999
  expect(counts()).toEqual([undefined, undefined])
  now = 10_000
  expect(count('too-fast')).toBe(2)
})

test('[OB306] an error of the log hook goes to `onError` and changes nothing else', async () => {
  const thrown = new Error('The disk of the log is full.')
  const errors: unknown[] = []
  const operations = new Operations({
    log: () => {
      throw thrown
    },
    onError: (error) => errors.push(error),
  })
  operations.refused(new ProtocolError('overloaded'))
  expect(errors).toEqual([thrown])
  await using server = await serve({
    log: () => {
      throw thrown
    },
  })
  expect(await (await server.browser().say('[[say Hello.]]')).text()).toContain('Hello.')
})

function reject(): Promise<never> {
  return Promise.reject(new Error('The log is not reachable.'))
}

test('[OB306] an asynchronous hook that rejects does not end the process', async () => {
  const rejected: unknown[] = []
  const note = (error: unknown): number => rejected.push(error)
  process.on('unhandledRejection', note)
  const hooks = { log: reject, onChunk: reject, onError: reject }
  try {
    await using server = await serve({ ...hooks, recorded: false })
    const { bridge } = server
    expect(await (await server.browser().say('[[say Hello.]]')).text()).toContain('Hello.')
    expect(await (await server.browser().say('[[fail 503 Busy.]]')).text()).toContain('error')
    await bridge.close()
    // Node.js reports a rejection when the microtasks of its tick have run.
    await new Promise(setImmediate)
    expect(rejected).toEqual([])
  } finally {
    process.off('unhandledRejection', note)
  }
})

function fail(error: unknown): never {
  throw error
}

test('[OB340] a lasting error of the store is news once, until writes have succeeded for a while', () => {
  const entries: LogEntry[] = []
  let now = 0
  const operations = new Operations({
    log: (entry) => entries.push(entry),
    onError: () => undefined,
    clock: () => now,
  })
  const events = () => entries.splice(0).map(({ event, code }) => [event, code])
  const full = new StoreError('full', 'No space.')
  // A request was refused because of it.
  expect(operations.isNews(new ProtocolError('store-failed', { cause: full }))).toBe(true)
  expect(operations.storeFault).toBe(full)
  expect(events()).toEqual([['store.unavailable', 'full']])
  // A read, and a write that needs no space, succeed in between.
  operations.storeChecked()
  operations.swept()
  expect(operations.isNews(full)).toBe(false)
  expect(events()).toEqual([])
  // Another error is news.
  expect(operations.isNews(new StoreError('read-only', 'A replica.'))).toBe(true)
  expect(events()).toEqual([['store.unavailable', 'read-only']])
  now += 10_000
  operations.storeChecked()
  expect(operations.storeFault).toMatchObject({ code: 'read-only' })
  operations.swept()
  expect(operations.storeFault).toBeUndefined()
  expect(events()).toEqual([['store.available', undefined]])
  expect(operations.isNews(full)).toBe(true)
  // Other errors are always news, and a changed audit record does not make the store unusable.
  expect(operations.isNews(new Error('model'))).toBe(true)
  expect(operations.isNews(new StoreError('tampered', 'Entry 3.'))).toBe(true)
  expect(operations.storeFault).toBe(full)
})
