import type { Event } from '@google/adk'
import { describe, expect, test } from 'vitest'

import { defer } from '../support/agents.ts'
import { textOf } from '../support/chat-probe.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { SseReader } from '../support/sse-reader.ts'
import { openSqliteStore, type Store } from '../../src/store/index.ts'
import { StoreError } from '../../src/store/store-error.ts'
import { type Folder, makeFolder } from './support/folder.ts'
import { openPair, type Pair } from './support/pair.ts'

const CHAT = { appName: 'adk-stream-protocol', principalId: 'hanako', chatId: 'chat-1' }

async function holder({ store }: Pair) {
  return store.approvals.findLockHolder(CHAT)
}

/** No test waits for this lease: on a busy machine, a server may not renew its lease for seconds. */
const LIMITS = { leaseMs: 60_000, sweepMs: 20 }

test('[TU2] a message to a chat in which another server runs a turn is rejected', async () => {
  await using pair = await openPair()
  const answer = await pair.atOne.begin('[[say One.]][[wait gate]][[say Two.]]')
  expect(await pair.atTwo.say('[[say Me too.]]')).toMatchObject({
    status: 409,
    code: 'turn-running',
  })
  pair.one.emulator.release('gate')
  expect(await answer.text()).toContain('Two.')
  expect((await pair.atTwo.say('[[say Now.]]')).body).toContain('Now.')
  expect(pair.two.emulator.requests).toHaveLength(1)
})

test('[TU2] of concurrent messages to two servers, one gets a reply', async () => {
  await using pair = await openPair()
  const script = '[[say One.]][[wait gate]][[say Two.]]'
  const answers = await Promise.all([pair.atOne.begin(script), pair.atTwo.begin(script)])
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409])
  for (const { emulator } of [pair.one, pair.two]) emulator.release('gate')
  const texts = await Promise.all(answers.map((answer) => answer.text()))
  expect(texts.filter((text) => text.includes('Two.'))).toHaveLength(1)
  expect((await pair.atOne.messages()).map(textOf)).toEqual([script, 'One.Two.'])
})

/** Returns a function that opens stores of a database. `beforeAppend` is called before an event is stored. */
function storesOf(
  { database: path }: Folder,
  beforeAppend: (event: Event) => Promise<void>,
): () => Promise<Store> {
  return async () => {
    const store = await openSqliteStore({ path })
    const append = store.sessions.appendEvent.bind(store.sessions)
    store.sessions.appendEvent = async (request) => {
      await beforeAppend(request.event)
      return append(request)
    }
    return store
  }
}

test.each([
  ['', {}],
  [', and MCP servers may ask during calls', { elicitation: true }],
])(
  '[TU1984] a decision that is sent again after its turn has failed shows the same end%s',
  async (_crossing, options) => {
    await using folder = await makeFolder()
    let isAway = true
    const openStore = storesOf(folder, async ({ author, content }) => {
      const isReply = author !== 'user' && JSON.stringify(content ?? '').includes('All settled.')
      if (!isAway || !isReply) return
      isAway = false
      throw new StoreError('unavailable', 'The database is away.')
    })
    await using pair = await openPair({ openStore, ...options })
    const asked = await pair.atOne.ask(
      '[[call pay {"to": "花子", "amount": 50}]][[then]][[say All settled.]]',
    )
    const failed = await pair.atOne.answer(asked, { approved: true })
    const error = {
      type: 'error',
      errorText: 'The server is not available. Try again in a moment.',
    }
    expect(failed.chunks.at(-1)).toMatchObject(error)
    const reply = async () => (await pair.atTwo.messages())[1]
    await expect.poll(reply).toMatchObject({ metadata: { error: { code: 'unavailable' } } })
    const again = await pair.atTwo.answer(asked, { approved: true })
    expect(again.chunks.at(-1)).toMatchObject(error)
    expect(again.body).not.toContain('"stopped":true')
    expect(await reply()).toMatchObject({ metadata: { error: { code: 'unavailable' } } })
    expect(pair.effects()).toHaveLength(1)
  },
)

test('[TU80] a denial is not reported by a server that has lost the chat to another one, where the agent replies', async () => {
  await using folder = await makeFolder()
  const other = { worker: 'other', token: 'other', leaseMs: 0, background: true }
  let isLost = false
  const openStore = storesOf(folder, async ({ author, content }) => {
    const isDenial = author === 'user' && JSON.stringify(content).includes('"confirmed":false')
    if (isDenial && !isLost) isLost = await pair.store.approvals.lockChat(CHAT, other)
  })
  await using pair = await openPair({ openStore, limits: LIMITS })
  const asked = await pair.atOne.ask(
    '[[call pay {"to": "花子", "amount": 50}]][[then]][[say All settled.]]',
  )
  await pair.atOne.decide(asked.approvalId, { approved: false })
  await expect.poll(() => isLost).toBe(true)
  const reply = async () => textOf((await pair.atTwo.messages())[1])
  // Meanwhile the first server could write.
  for (let read = 0; read < 10; read += 1) expect(await reply()).toBe('')
  await pair.store.approvals.unlockChat(CHAT, other.token)
  const again = await pair.atTwo.answer(asked, { approved: false })
  expect(again.body).toContain('"type":"tool-output-denied"')
  expect(await reply()).toBe('All settled.')
  expect(pair.effects()).toEqual([])
})

test('[TU2] with queue, a message waits for the turn of another server', async () => {
  await using pair = await openPair({ whileRunning: 'queue' })
  const answer = await pair.atOne.begin('[[say One.]][[wait gate]]')
  const taken = pair.untilTaken(3)
  const second = pair.atTwo.say('[[say Two.]]')
  await taken
  expect(pair.two.emulator.requests).toHaveLength(0)
  pair.one.emulator.release('gate')
  await answer.text()
  expect((await second).body).toContain('Two.')
  const assistant = (await pair.atOne.messages()).filter(({ role }) => role === 'assistant')
  expect(assistant.map(textOf)).toEqual(['One.', 'Two.'])
})

test('[TU2] a message that waits longer than two leases is rejected with turn-running', async () => {
  const limits = { leaseMs: 100, sweepMs: 20 }
  await using pair = await openPair({
    whileRunning: 'queue',
    limits,
    ofOne: { limits: LIMITS },
  })
  const answer = await pair.atOne.begin('[[say One.]][[wait gate]]')
  // The lock seems to be from the future, so that it does not expire for the second server.
  await pair.leases.age(-3_600_000)
  expect(await pair.atTwo.say('[[say Two.]]')).toMatchObject({ status: 409, code: 'turn-running' })
  pair.one.emulator.release('gate')
  expect(await answer.text()).toContain('[DONE]')
})

test('[TU2] a message waits for a turn that another server resumes by itself', async () => {
  const started = defer()
  const gate = defer()
  const reached = async (moment: string) => {
    if (moment !== 'before effect') return
    started.resolve()
    await gate.promise
  }
  await using pair = await openPair({ ofOne: { reached } })
  const { approvalId } = await pair.atOne.ask()
  await pair.atOne.decide(approvalId, { approved: true })
  await started.promise
  const sign = (await holder(pair))?.lastSeenAt ?? 0
  const answered = pair.atTwo.say('[[say Next.]]')
  // It has found more than once that the other server is alive, and still waits.
  await expect.poll(async () => (await holder(pair))?.lastSeenAt).toBeGreaterThan(sign + 40)
  await pair.untilTaken(3)
  gate.resolve()
  expect((await answered).body).toContain('Next.')
  expect(pair.effects()).toHaveLength(1)
})

test('[TU13] a turn keeps its chat lock for longer than a lease', async () => {
  await using pair = await openPair({ limits: LIMITS })
  const answer = await pair.atOne.begin('[[say One.]][[wait gate]][[say Two.]]')
  await pair.leases.passWhileRenewed(LIMITS.leaseMs)
  expect((await pair.atTwo.say('[[say Me too.]]')).code).toBe('turn-running')
  pair.one.emulator.release('gate')
  expect(await answer.text()).toContain('Two.')
})

test('[TU13] the chat lock of a crashed server expires with its lease, and a waiting message gets its reply', async () => {
  await using pair = await openPair({ limits: LIMITS })
  const dead = { worker: 'dead', token: 'dead', leaseMs: LIMITS.leaseMs, background: false }
  expect(await pair.store.approvals.lockChat(CHAT, dead)).toBe(true)
  const taken = pair.untilTaken(3)
  const answered = pair.atTwo.say('[[say Alive.]]')
  await taken
  await pair.leases.expire()
  expect((await answered).body).toContain('Alive.')
})

const ENDINGS: readonly (readonly [string, (pair: Pair) => Promise<unknown>])[] = [
  ['by itself', ({ atOne }) => atOne.say('[[say Fine.]]')],
  ['with an error of the model', ({ atOne }) => atOne.say('[[fail 400 no]]')],
  ['with a question', ({ atOne }) => atOne.ask()],
  ['with an answer that holds nothing new', askAndRepeat],
  ['because it is stopped', begunAnd(({ atOne }) => atOne.post('/chats/chat-1/stop', {}))],
  ['because its chat is deleted', begunAnd(deleteChat)],
  ['because its server closes', begunAnd(({ one }) => one.bridge.close({ drainMs: 0 }))],
  ['because its reader leaves', async ({ atOne }) => (await atOne.begin(OPEN)).body?.cancel()],
]

const OPEN = '[[say Half.]][[wait never]]'

function begunAnd(end: (pair: Pair) => Promise<unknown>) {
  return async (pair: Pair): Promise<void> => {
    const answer = await pair.atOne.begin(OPEN)
    await end(pair)
    await answer.text()
  }
}

function deleteChat({ one }: Pair): Promise<Response> {
  return fetch(`${one.url}/chats/chat-1`, { method: 'DELETE', headers: { 'x-user': 'hanako' } })
}

async function askAndRepeat({ atOne }: Pair): Promise<void> {
  const asked = await atOne.ask()
  await atOne.answer({ ...asked, messageId: 'none' }, { approved: false })
  expect((await atOne.answer(asked, { approved: true })).code).toBe('approval-decided')
}

test.each(ENDINGS)('[TU13] a turn that ends %s releases its chat lock', async (_how, live) => {
  await using pair = await openPair()
  await live(pair)
  await expect.poll(() => holder(pair)).toBeUndefined()
  expect((await pair.atTwo.say('[[say Next.]]')).body).toContain('Next.')
})

test('[AP363] an approval that another server has decided is rejected as decided at the server that requested it, although its preview has changed', async () => {
  let balance = 900
  const preview = () => ({ changes: [{ label: 'Balance', before: String(balance), after: '0' }] })
  await using pair = await openPair({ approvals: { pay: { preview } } })
  const { approvalId } = await pair.atOne.ask()
  const seen = (await pair.atTwo.approval(approvalId))?.approval as
    | { readonly preview?: { readonly digest: string } }
    | undefined
  const decision = { approved: true, preview: seen?.preview?.digest }
  expect((await pair.atTwo.decide(approvalId, decision)).status).toBe(200)
  balance = 850
  expect((await pair.atOne.decide(approvalId, decision)).code).toBe('approval-decided')
})

test('[TU796] a turn is stopped at another server on the same SQLite file', async () => {
  await using pair = await openPair({ limits: LIMITS })
  const answer = await pair.atOne.begin(OPEN)
  expect((await pair.atTwo.post('/chats/chat-1/stop', {})).status).toBe(204)
  expect(await holder(pair)).toBeUndefined()
  expect(await answer.text()).toContain('"type":"abort"')
  expect((await pair.atTwo.messages()).at(-1)).toMatchObject({ metadata: { stopped: true } })
})

/** The ways to stop the turn of a message that the first server runs. */
const STOPS: readonly (readonly [string, (pair: Pair, messageId: string) => Promise<unknown>])[] = [
  ['POST', ({ atOne }, id) => atOne.post(`/chats/chat-1/stop?messageId=${id}`, {})],
  [
    'POST at another server',
    ({ atTwo }, id) => atTwo.post(`/chats/chat-1/stop?messageId=${id}`, {}),
  ],
  ['a frame', ({ one }, id) => sendStop(one.url, id)],
  ['a frame at another server', ({ two }, id) => sendStop(two.url, id)],
]

async function sendStop(url: string, messageId: string): Promise<void> {
  await using client = await SocketClient.open(url, { headers: { 'x-user': 'hanako' } })
  client.send({ type: 'stop', id: 'chat-1', messageId })
  await client.sync()
}

describe.each(STOPS)('stopped by %s', (_name, stop) => {
  test.each(['its own id', 'the id of the user message'])(
    '[TU1580] a stop that names a message by %s does not stop the turn of another one',
    async (name) => {
      await using pair = await openPair({ limits: LIMITS })
      await (await pair.atOne.begin('[[say First.]]', 'u1')).text()
      const [, first] = await pair.atOne.messages()
      const answer = await pair.atOne.begin('[[say A.]][[wait gate]][[say B.]][[wait never]]', 'u2')
      const reader = new SseReader(answer)
      await reader.until('A.')
      const [start] = reader.client.chunks
      const isOwn = name === 'its own id'
      await stop(pair, isOwn ? (first?.id ?? '') : 'u1')
      pair.one.emulator.release('gate')
      await reader.until('B.')
      await stop(pair, isOwn && start?.type === 'start' ? start.messageId : 'u2')
      await reader.done
      const [, , , second] = await pair.atOne.messages()
      expect([textOf(second), second?.metadata]).toMatchObject(['A.B.', { stopped: true }])
    },
  )
})

test('[TU796] a stop is rejected with unavailable if the server that has the chat cannot be asked', async () => {
  await using folder = await makeFolder()
  const openStore = async (): Promise<Store> => {
    const { signals: _signals, ...store } = await openSqliteStore({ path: folder.database })
    return store
  }
  await using pair = await openPair({ limits: LIMITS, openStore })
  expect((await pair.atTwo.post('/chats/chat-1/stop', {})).status).toBe(204)
  const answer = await pair.atOne.begin('[[say Half.]][[wait gate]][[say Rest.]]')
  expect(await pair.atTwo.post('/chats/chat-1/stop', {})).toMatchObject({
    status: 503,
    code: 'unavailable',
  })
  pair.one.emulator.release('gate')
  expect(await answer.text()).toContain('Rest.')
})

test('[TU797] a stop at a server whose message waits for the chat stops the turn that runs', async () => {
  await using pair = await openPair({ limits: LIMITS, whileRunning: 'queue' })
  const answer = await pair.atOne.begin(OPEN)
  const taken = pair.untilTaken(2)
  const waiting = pair.atTwo.say('[[say Next.]]')
  await taken
  expect((await pair.atTwo.post('/chats/chat-1/stop', {})).status).toBe(204)
  expect(await answer.text()).toContain('"type":"abort"')
  expect((await waiting).code).toBe('unavailable')
})
