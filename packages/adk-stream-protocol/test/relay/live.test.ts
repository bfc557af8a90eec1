import { startEmulator } from 'gemini-emulator'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

import { openPair } from '../faults/support/pair.ts'
import type { Person } from '../faults/support/person.ts'
import { speak } from '../live/support/voice.ts'
import { OPEN_RUN_LOCK } from '../../src/locks/lock-names.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { defer } from '../support/agents.ts'
import { textOf } from '../support/chat-probe.ts'
import { ASK, locatedRequest, locationTool, TOKYO } from '../support/locating.ts'
import { readUntil } from '../support/read-feed.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { HEADERS, LIVE_MODEL, LiveClient, ModelSockets, openLivePair } from './support/live-pair.ts'
import { createRelayDatabase } from './support/relays.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createRelayDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const PAY = '[[call pay {"to": "花子", "amount": 50}]][[then]][[say All settled.]]'

test('[LV320] [LV323] a client that comes back at another server takes its live session with it', async () => {
  await using pair = await openLivePair(database, 'moving-live')
  const first = await pair.join('one')
  expect(await first.say('[[say One.]]')).toBe('One.')
  await first[Symbol.asyncDispose]()
  await using second = await pair.join('two')
  await second.status('open')
  expect(await second.say('[[say Two.]]')).toBe('Two.')
  // The model was given a handle, and no history.
  expect(pair.model.handles).toEqual([undefined, expect.any(String)])
  expect(pair.emulator.live.sessions[1]?.history).toHaveLength(4)
  expect(pair.model).toMatchObject({ most: 1, open: 1 })
  await using third = await pair.join('one')
  expect(await third.say('[[say Three.]]')).toBe('Three.')
  await second.status('moved')
  expect(pair.model).toMatchObject({ most: 1, open: 1 })
  const readReplies = async () =>
    (await pair.atTwo.messages()).map(textOf).filter((_, index) => index % 2 === 1)
  await expect.poll(readReplies).toEqual(['One.', 'Two.', 'Three.'])
  expect([...pair.one.errors, ...pair.two.errors]).toEqual([])
})

test('[LV324] a call that waits for approval moves with its live session, and runs once', async () => {
  await using pair = await openLivePair(database, 'asking-live')
  const first = await pair.join('one')
  await first.say(PAY)
  const [asked] = await pair.atOne.approvalsOfChat()
  await first[Symbol.asyncDispose]()
  await using second = await pair.join('two')
  await second.status('open')
  expect(pair.emulator.live.sessions[1]?.pendingCalls).toHaveLength(1)
  // Decided at the server that asked, which does not have the session any more.
  expect(await pair.atOne.decide(asked?.id ?? '', { approved: true })).toMatchObject({
    status: 200,
  })
  await second.hears('All settled.')
  expect(pair.emulator.live.sessions[1]?.pendingCalls).toEqual([])
  expect(pair.emulator.requests).toEqual([])
  expect(pair.effects()).toHaveLength(1)
  expect(pair.model).toMatchObject({ most: 1, open: 1 })
})

test.each([true, false])(
  '[LV602] a parked call moves with its live session, and the model receives the outcome once; approved: %s',
  async (approved) => {
    await using pair = await openLivePair(database, 'parked-live')
    const first = await pair.join('one')
    await first.say(PAY)
    const [asked] = await pair.atOne.approvalsOfChat()
    // The question parks the call.
    expect(await first.say('[[say Fifty dollars.]]')).toBe('Fifty dollars.')
    expect(pair.emulator.live.sessions[0]?.pendingCalls).toEqual([])
    await first[Symbol.asyncDispose]()
    await using second = await pair.join('two')
    await second.status('open')
    expect((await pair.atOne.decide(asked?.id ?? '', { approved })).status).toBe(200)
    await second.hears('[Result of the call')
    expect(pair.effects()).toHaveLength(approved ? 1 : 0)
    expect(await second.say('[[say Bye.]]')).toBe('Bye.')
    const known = JSON.stringify(pair.emulator.live.sessions[1]?.history)
    expect(known.match(/awaiting_approval|has not run/g)).toHaveLength(1)
    expect(known.match(/\[Result of the call/g)).toHaveLength(2)
    expect(known).toContain(approved ? 'paid' : 'denied')
    expect(pair.emulator.requests).toEqual([])
    expect(pair.model).toMatchObject({ most: 1, open: 1 })
  },
)

test('[LV490] a call that waits inside agents moves with its live session, and runs once', async () => {
  await using pair = await openLivePair(database, 'nested-live')
  const first = await pair.join('one')
  const desk = `[[call desk ${JSON.stringify({ request: PAY })}]][[then]][[say Passed on.]]`
  await first.say(`[[call agency ${JSON.stringify({ request: desk })}]][[then]][[say Told.]]`)
  const [asked] = await pair.atOne.approvalsOfChat()
  expect(asked).toMatchObject({ path: [expect.any(String), 'agency', 'desk'] })
  await first[Symbol.asyncDispose]()
  await using second = await pair.join('two')
  await second.status('open')
  expect(pair.emulator.live.sessions[1]?.pendingCalls).toHaveLength(1)
  expect(await pair.atOne.decide(asked?.id ?? '', { approved: true })).toMatchObject({
    status: 200,
  })
  await second.hears('Told.')
  expect(pair.emulator.live.sessions[1]?.pendingCalls).toEqual([])
  expect(pair.effects()).toHaveLength(1)
  expect(pair.model).toMatchObject({ most: 1, open: 1 })
})

test('[LV322] the newest speaker has the live session; a microphone that is only open does not take it back', async () => {
  await using pair = await openLivePair(database, 'two-speakers')
  await using first = await pair.join('one', 'binary')
  speak(first.socket)
  await first.socket.nextOf('turn')
  await using second = await pair.join('two')
  // It listens only, so the session stays.
  expect(pair.emulator.live.sessions).toHaveLength(1)
  expect(await second.say('[[say Here now.]]')).toBe('Here now.')
  await first.status('moved')
  expect(first.socket.frames.some((frame) => frame['status'] === 'taken-over')).toBe(false)
  // The client of the other server reads what is said here.
  await first.socket.next(() => first.turns.includes('Here now.'))
  for (let count = 0; count < 5; count += 1) {
    speak(first.socket)
    await first.socket.sync()
  }
  expect(pair.emulator.live.sessions).toHaveLength(2)
  expect(await second.say('[[say Still here.]]')).toBe('Still here.')
  expect(pair.emulator.live.sessions).toHaveLength(2)
  // A message is meant for the model.
  expect(await first.say('[[say Back again.]]')).toBe('Back again.')
  await second.socket.next(() => second.turns.includes('Back again.'))
  expect(pair.emulator.live.sessions).toHaveLength(3)
  expect(pair.model).toMatchObject({ most: 1, open: 1 })
  expect(first.turns.filter((text) => text === 'Here now.')).toHaveLength(1)
})

test('[LV880] a device that speaks at another server takes over, and the older one learns it', async () => {
  await using pair = await openLivePair(database, 'two-devices')
  await using older = await pair.join('one', 'binary')
  speak(older.socket)
  await older.socket.nextOf('turn')
  await using newer = await pair.join('two', 'binary')
  speak(newer.socket)
  await older.status('taken-over')
  // All of its audio has arrived.
  await newer.socket.nextOf('user-message')
  expect(newer.socket.frames.some((frame) => frame['status'] === 'taken-over')).toBe(false)
  // An image is meant for the model, although the microphone has not paused.
  older.socket.send({ type: 'image', id: pair.chatId, data: 'aaaa', mimeType: 'image/png' })
  await newer.status('moved')
})

test('[LV323] if Gemini rejects the handle, or it does not cover everything, the session is restored from its messages', async () => {
  await using pair = await openLivePair(database, 'restored', {})
  const first = await pair.join('one')
  await first.say('[[say One.]]')
  await first[Symbol.asyncDispose]()
  // Over HTTP, without a live session.
  expect((await pair.atTwo.say('[[say Two.]]')).body).toContain('Two.')
  await using second = await pair.join('two')
  await second.status('open')
  expect(await second.say('[[say Three.]]')).toBe('Three.')
  expect(pair.model.handles).toEqual([undefined, undefined])
  const texts = pair.emulator.live.sessions[1]?.history.map(({ parts }) => parts?.[0]?.text)
  expect(texts).toEqual([
    '[[say One.]]',
    'One.',
    '[[say Two.]]',
    'Two.',
    '[[say Three.]]',
    'Three.',
  ])
  expect(pair.model).toMatchObject({ most: 1, open: 1 })
})

test('[LV324] a decision counts once while the live session moves, wherever it is given', async () => {
  await using pair = await openLivePair(database, 'deciding-while-moving')
  const places = ['one', 'two'] as const
  let client = await pair.join('one')
  for (let round = 0; round < 4; round += 1) {
    await client.say(PAY)
    const [asked] = await pair.atOne.approvalsOfChat()
    const decider = round < 2 ? pair.atOne : pair.atTwo
    await client[Symbol.asyncDispose]()
    const [next, decided] = await Promise.all([
      pair.join(places[(round + 1) % 2] ?? 'one'),
      decider.decide(asked?.id ?? '', { approved: true }),
    ])
    expect(decided.status).toBe(200)
    await expect.poll(() => pair.count('All settled.')).toBe(round + 1)
    expect(pair.effects()).toHaveLength(round + 1)
    client = next
  }
  expect(pair.model.most).toBe(1)
  await client[Symbol.asyncDispose]()
})

test('[LV324] a session stays while a decision is being stored, and its model replies to the result', async () => {
  await using pair = await openLivePair(database, 'storing-a-decision')
  const client = await pair.join('one')
  await client.say(PAY)
  const [asked] = await pair.atOne.approvals()
  await client[Symbol.asyncDispose]()
  await database.run('BEGIN; SELECT FROM approvals FOR UPDATE')
  const deciding = pair.atOne.decide(asked?.id ?? '', { approved: true })
  const findWaiting = () =>
    database.run(`SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted`)
  await expect.poll(findWaiting).not.toHaveLength(0)
  await using watcher = await pair.join('two')
  // Time in which the second server asks for the session.
  await passTime()
  await database.run('COMMIT')
  expect((await deciding).status).toBe(200)
  await watcher.socket.next(() => watcher.turns.some((text) => text.includes('All settled.')))
  expect(pair.emulator.live.sessions[0]?.pendingCalls).toEqual([])
  expect(pair.effects()).toHaveLength(1)
})

test('[LV325] [RL320] a decision given at another server reaches the live session, and is reported once', async () => {
  await using pair = await openLivePair(database, 'decided-elsewhere')
  await using client = await pair.join('one')
  await client.status('open')
  await using watcher = await pair.join('two')
  const feed = await fetch(`${pair.two.url}/chats/${pair.chatId}/events`, { headers: HEADERS })
  await client.say(PAY)
  const [asked] = await pair.atTwo.approvalsOfChat()
  const { messageId } = asked ?? {}
  expect((await pair.atTwo.decide(asked?.id ?? '', { approved: true })).status).toBe(200)
  await client.hears('All settled.')
  await watcher.socket.next(() => watcher.turns.includes('All settled.'))
  expect(pair.emulator.live.sessions).toHaveLength(1)
  expect(pair.emulator.requests).toEqual([])
  await passTime()
  await client.say('[[say Next.]]')
  const seen = await readUntil(
    feed,
    (event) => event['type'] === 'turn' && event['messageId'] !== messageId,
  )
  const turns = seen.filter(({ type }) => type === 'turn')
  // The message has two turns: up to the question, and after the decision.
  expect(turns.filter((event) => event['messageId'] === messageId)).toHaveLength(2)
  expect(watcher.turns.filter((text) => text === 'All settled.')).toHaveLength(1)
})

test('[RL320] a reply that is reported after its live session has moved here is shown once', async () => {
  await using pair = await openLivePair(database, 'reported-late')
  const first = await pair.join('one')
  const unwritten = pair.holdWrites(() => true)
  const speaking = first.begin('[[say One.]][[wait gate]][[say Two.]]')
  await first.socket.untilText('One.', speaking)
  await first[Symbol.asyncDispose]()
  await using second = await pair.join('two')
  pair.emulator.release('gate')
  await second.status('open')
  unwritten[Symbol.dispose]()
  await second.hears('One.Two.')
  expect(await second.say('[[say Three.]]')).toBe('Three.')
  expect(second.turns).toEqual(['One.Two.'])
})

test('[LV1963] a live reply whose turn could not be opened is reported at other servers when the store is back', async () => {
  await using pair = await openLivePair(database, 'unopened')
  await using client = await pair.join('one')
  const feed = await fetch(`${pair.two.url}/events`, { headers: HEADERS })
  const outage = pair.failTurns()
  await expect(client.say('[[say Hello.]]')).rejects.toThrow('unavailable')
  await expect.poll(() => textsAt(pair.atOne)).toEqual(['[[say Hello.]]', 'Hello.'])
  outage[Symbol.dispose]()
  await readUntil(feed, ({ type, chatId }) => type === 'stored' && chatId === pair.chatId)
  expect(await textsAt(pair.atTwo)).toEqual(['[[say Hello.]]', 'Hello.'])
})

async function textsAt(person: Person): Promise<string[]> {
  return (await person.messages()).map(textOf)
}

/** Waits for half a second of the database's clock, in which something must not happen. */
async function passTime(): Promise<void> {
  const [{ now: from } = { now: 0 }] = await database.run('SELECT clock_timestamp() AS now')
  const isOver = () =>
    database.run(`SELECT WHERE clock_timestamp() > $1::timestamptz + interval '500 ms'`, [from])
  await expect.poll(isOver).toHaveLength(1)
}

/** Opens a live session at the first server whose call waits for the output of a browser tool. */
async function locating(chatId: string) {
  const pair = await openLivePair(database, chatId, { tools: [locationTool()] })
  const client = await pair.join('one')
  await client.say(ASK)
  // Until the second server has read the end of the turn, it leaves the message to those who resume the stream.
  const [, message] = await vi.waitFor(
    async () => {
      const messages = await pair.atTwo.messages()
      expect(messages).toHaveLength(2)
      return messages
    },
    { timeout: 120_000 },
  )
  const toolCallId = message?.parts.find((part) => part.toolCallId !== undefined)?.toolCallId
  return { pair, client, message, toolCallId }
}

async function expectLocated({ pair, client }: Awaited<ReturnType<typeof locating>>) {
  await client.hears('are.')
  expect(pair.emulator.live.sessions).toHaveLength(1)
  expect(pair.emulator.live.sessions[0]?.pendingCalls).toEqual([])
  expect(pair.emulator.requests).toEqual([])
  await client[Symbol.asyncDispose]()
  await pair[Symbol.asyncDispose]()
}

test('[LV325] [LV1581] the output of a browser tool that another server gets in a frame reaches the live session, and is acknowledged when it is stored', async () => {
  const asked = await locating('located-by-frame')
  await using other = await asked.pair.join('two')
  const output = { toolCallId: asked.toolCallId, output: TOKYO, tool: 'get_location' }
  other.socket.send({ type: 'tool-output', id: asked.pair.chatId, outputId: 'o1', ...output })
  expect(await other.socket.nextOf('tool-output-taken')).toMatchObject({ ok: true })
  // The message may be running again, and is then left out of those that are stored.
  const stored = database.run(
    `SELECT FROM events WHERE data LIKE '%' || $1 || '%' AND data LIKE '%139.7%'`,
    [asked.toolCallId],
  )
  expect(await stored).toHaveLength(1)
  await expectLocated(asked)
})

test('[LV325] the output of a browser tool that another server gets by POST /stream reaches the live session', async () => {
  const asked = await locating('located-by-post')
  const { message } = asked
  const answer = await asked.pair.atTwo.post('/stream', locatedRequest(message, asked.pair.chatId))
  expect(answer.body).toContain('are.')
  await expectLocated(asked)
})

test('[RL870] a browser call that moves to a server whose clock is ahead does not time out early', async () => {
  const { pair, client, toolCallId } = await locating('located-later')
  await client[Symbol.asyncDispose]()
  const now = Date.now.bind(Date)
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + 3_600_000)
  try {
    await using second = await pair.join('two')
    await second.status('open')
    const readStates = async () => (await pair.atTwo.calls()).map(({ state }) => state)
    // An expired timer fires before the first of these reads, and needs two queries to end the call.
    for (let reads = 0; reads < 10; reads += 1)
      expect(await readStates()).toEqual(['input-available'])
    const output = { toolCallId, output: TOKYO, tool: 'get_location' }
    second.socket.send({ type: 'tool-output', id: pair.chatId, outputId: 'o1', ...output })
    expect(await second.socket.nextOf('tool-output-taken')).toMatchObject({ ok: true })
    await expect.poll(readStates).toEqual(['output-available'])
  } finally {
    clock.mockRestore()
  }
  await pair[Symbol.asyncDispose]()
})

test('[LV326] a closing server hands its live sessions over, with the calls that wait', async () => {
  await using pair = await openLivePair(database, 'draining', { tools: [locationTool()] })
  await using first = await pair.join('one')
  await first.say(PAY)
  await pair.one.bridge.close()
  expect(await first.socket.closed).toBe(1001)
  expect(pair.model.open).toBe(0)
  await using second = await pair.join('two')
  await second.status('open')
  const [asked] = await pair.atTwo.approvalsOfChat()
  await pair.atTwo.decide(asked?.id ?? '', { approved: true })
  await second.hears('All settled.')
  expect(pair.model.handles).toEqual([undefined, expect.any(String)])
  expect(pair.effects()).toHaveLength(1)
  expect(pair.emulator.requests).toEqual([])
})

test('[LV321] a client that only watches waits for the end of a reply that nobody else hears, and then takes the session', async () => {
  await using pair = await openLivePair(database, 'waiting')
  const first = await pair.join('one')
  const speaking = first.begin('[[say One.]][[wait gate]][[say Two.]]')
  await first.socket.untilText('One.', speaking)
  await first[Symbol.asyncDispose]()
  await using second = await pair.join('two')
  expect(pair.emulator.live.sessions).toHaveLength(1)
  pair.emulator.release('gate')
  await second.status('open')
  expect(pair.model).toMatchObject({ most: 1, open: 1 })
  await expect.poll(async () => (await pair.atTwo.messages()).map(textOf).at(-1)).toBe('One.Two.')
})

test('[LV320] a live session moves between processes on one SQLite file', async () => {
  await using emulator = await startEmulator()
  const model = new ModelSockets(emulator)
  await using pair = await openPair({ liveModel: LIVE_MODEL, modelUrl: emulator.baseUrl })
  const first = await LiveClient.join(pair.one.url, 'chat-1')
  await first.say(PAY)
  await first[Symbol.asyncDispose]()
  await using second = await LiveClient.join(pair.two.url, 'chat-1')
  await second.status('open')
  const [asked] = await pair.atOne.approvalsOfChat()
  await pair.atOne.decide(asked?.id ?? '', { approved: true })
  await second.hears('All settled.')
  expect(model.handles).toEqual([undefined, expect.any(String)])
  expect(model).toMatchObject({ most: 1, open: 1 })
  expect(pair.effects()).toHaveLength(1)
  model.stop()
})

test('[LV1961] [LV602] a reply that is cut off because its session moves is stored as stopped before; a call that waits is not, and moves', async () => {
  await using emulator = await startEmulator()
  const model = new ModelSockets(emulator)
  await using pair = await openPair({ liveModel: LIVE_MODEL, modelUrl: emulator.baseUrl })
  await using first = await LiveClient.join(pair.one.url, 'chat-1')
  await first.say(PAY)
  const cutOff = first.begin('[[say Half.]][[wait never]][[say Whole.]]')
  await first.socket.untilText('Half.', cutOff)
  await using second = await LiveClient.join(pair.two.url, 'chat-1')
  expect(await second.say('[[say Two.]]')).toBe('Two.')
  expect(await first.whole(cutOff)).toBe('Half.')
  const stops = async () =>
    (await pair.atTwo.messages()).flatMap(({ role, metadata }) =>
      role === 'assistant'
        ? [(metadata as { stopped?: boolean } | undefined)?.stopped ?? false]
        : [],
    )
  expect(await stops()).toEqual([false, true, false])
  expect(JSON.stringify(emulator.live.sessions[1]?.history)).toContain('Half.')
  const [asked] = await pair.atOne.approvalsOfChat()
  await pair.atTwo.decide(asked?.id ?? '', { approved: true })
  await second.hears('[Result of the call')
  expect(await stops()).toEqual([false, true, false])
  const known = JSON.stringify(emulator.live.sessions[1]?.history)
  expect(known.match(/awaiting_approval|has not run/g)).toHaveLength(1)
  // The text of the server, and the reply of the model, which repeats it.
  expect(known.match(/\[Result of the call/g)).toHaveLength(2)
  expect(pair.effects()).toHaveLength(1)
  expect(model).toMatchObject({ most: 1, open: 1 })
  expect([...pair.one.errors, ...pair.two.errors]).toEqual([])
  model.stop()
})

test('[TU901] a message whose server was paused before it had the live session is not sent to the model again', async () => {
  await using emulator = await startEmulator()
  await using pair = await openPair({ liveModel: LIVE_MODEL, modelUrl: emulator.baseUrl })
  await using atOne = await SocketClient.open(pair.one.url, { headers: HEADERS })
  await using atTwo = await SocketClient.open(pair.two.url, { headers: HEADERS })
  const parts = [{ type: 'text', text: '[[say One.]]' }]
  const messages = [{ id: 'm1', role: 'user', parts }]
  const frame = { type: 'send', requestId: 'r1', id: 'chat-1', trigger: 'submit-message', messages }
  const [paused, goesOn] = [defer(), defer()]
  const lockChat = pair.ofFirst.lockChat.bind(pair.ofFirst)
  pair.ofFirst.lockChat = async (...given) => {
    paused.resolve()
    await goesOn.promise
    return lockChat(...given)
  }
  atOne.send(frame)
  await paused.promise
  // The client has lost its connection, and sends the message again.
  atTwo.send(frame)
  await atTwo.next(({ type }) => type === 'end')
  goesOn.resolve()
  await atOne.next(({ type }) => type === 'end')
  expect(atOne.text('r1')).toBe('One.')
  expect((await pair.atTwo.messages()).map(({ role }) => role)).toEqual(['user', 'assistant'])
})

test('[TU901] a live message that is sent again at another server is read there although its turn was not open', async () => {
  await using emulator = await startEmulator()
  await using pair = await openPair({ liveModel: LIVE_MODEL, modelUrl: emulator.baseUrl })
  await using atOne = await SocketClient.open(pair.one.url, { headers: HEADERS })
  await using atTwo = await SocketClient.open(pair.two.url, { headers: HEADERS })
  const parts = [{ type: 'text', text: '[[say One.]]' }]
  const messages = [{ id: 'm1', role: 'user', parts }]
  const frame = { type: 'send', requestId: 'r1', id: 'chat-1', trigger: 'submit-message', messages }
  const [paused, asks, goesOn] = [defer(), defer(), defer()]
  const lockChat = pair.ofFirst.lockChat.bind(pair.ofFirst)
  pair.ofFirst.lockChat = async (chat, lock) => {
    if (!chat.appName.endsWith(OPEN_RUN_LOCK)) {
      paused.resolve()
      await goesOn.promise
    }
    return lockChat(chat, lock)
  }
  const findLockHolder = pair.ofSecond.findLockHolder.bind(pair.ofSecond)
  pair.ofSecond.findLockHolder = (chat) => {
    asks.resolve()
    return findLockHolder(chat)
  }
  atOne.send(frame)
  await paused.promise
  // The message is stored. Its client has lost the connection, and sends it again.
  atTwo.send(frame)
  await asks.promise
  goesOn.resolve()
  await atTwo.nextOf('end', 'r1')
  expect(atTwo.text('r1')).toBe('One.')
  expect((await pair.atTwo.messages()).map(({ role }) => role)).toEqual(['user', 'assistant'])
})

test('[TU901] a live message that is sent again at another server is read there while the reply is written', async () => {
  await using pair = await openLivePair(database, 'repeated-live')
  const atOne = await SocketClient.open(pair.one.url, { headers: HEADERS })
  await using atTwo = await SocketClient.open(pair.two.url, { headers: HEADERS })
  const parts = [{ type: 'text', text: '[[say Half.]][[wait end]][[say Whole.]]' }]
  const messages = [{ id: 'm1', role: 'user', parts }]
  const rest = { id: pair.chatId, trigger: 'submit-message', messages }
  atOne.send({ type: 'send', requestId: 'r1', ...rest })
  await atOne.untilText('Half.')
  // The client has lost its connection.
  await atOne[Symbol.asyncDispose]()
  atTwo.send({ type: 'send', requestId: 'r1', ...rest })
  await atTwo.untilText('Half.')
  pair.emulator.release('end')
  await atTwo.nextOf('end', 'r1')
  expect(atTwo.text('r1')).toBe('Half.Whole.')
  expect((await pair.atTwo.messages()).map(({ role }) => role)).toEqual(['user', 'assistant'])
})
