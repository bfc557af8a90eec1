import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

import { afterAll, beforeAll, expect, test, vi } from 'vitest'

import { bundleChildren } from '../faults/support/children.ts'
import { makeFolder } from '../faults/support/folder.ts'
import { Person } from '../faults/support/person.ts'
import { defer } from '../support/agents.ts'
import { textOf } from '../support/chat-probe.ts'
import { postgresLeaseTimes } from '../support/lease-times.ts'
import { joinDeltas, PositionClient } from '../support/position-client.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { readUntil } from '../support/read-feed.ts'
import { createRelayDatabase } from './support/relays.ts'
import { openRelayPair, Stream } from './support/servers.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createRelayDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const WORDS = ['One.', 'Two.', 'Three.', 'Four.', 'Five.']

test('[RL21] a client that moves between two servers at every piece has the identical message', async () => {
  await using pair = await openRelayPair(database, 'moving')
  const script = WORDS.map((word, index) => `[[say ${word}]][[wait gate-${index}]]`).join('')
  const whole = Stream.read(await pair.atOne.begin(script))
  const places = [pair.atTwo, pair.atOne]
  let moved: Stream | undefined
  for (const [index] of WORDS.entries()) {
    const place = places[index % 2] ?? pair.atTwo
    moved?.leave()
    moved = await Stream.open(place)
    expect(moved.status).toBe(200)
    await moved.until(WORDS.slice(0, index + 1).join(''))
    if (index < WORDS.length - 1) pair.one.emulator.release(`gate-${index}`)
  }
  moved?.leave()
  const last = await Stream.open(pair.atTwo)
  pair.one.emulator.release(`gate-${WORDS.length - 1}`)
  await Promise.all([whole.done, last.done])
  expect(last.message).toEqual(whole.message)
  expect((await pair.atTwo.messages()).at(-1)).toEqual(JSON.parse(JSON.stringify(whole.message)))
  expect([...pair.one.errors, ...pair.two.errors]).toEqual([])
})

test('[PO7] a client that continues at its position on another server, at every piece, receives every chunk once', async () => {
  await using pair = await openRelayPair(database, 'continued')
  const script = WORDS.map((word, index) => `[[say ${word}]][[wait continued-${index}]]`).join('')
  const whole = Stream.read(await pair.atOne.begin(script))
  const client = new PositionClient()
  const places = [pair.atTwo, pair.atOne]
  for (const [index] of WORDS.entries()) {
    const moved = await Stream.open(places[index % 2] ?? pair.atTwo, client)
    await moved.until(WORDS.slice(0, index + 1).join(''))
    moved.leave()
    await moved.done
    if (index < WORDS.length - 1) pair.one.emulator.release(`continued-${index}`)
  }
  const last = await Stream.open(pair.atTwo, client)
  pair.one.emulator.release(`continued-${WORDS.length - 1}`)
  await Promise.all([whole.done, last.done])
  expect(joinDeltas(client.chunks)).toEqual(joinDeltas(whole.chunks))
  expect((await Stream.openOnce(pair.atTwo, { client })).status).toBe(204)
})

test('[PO7] a server that has received less of a turn than the client sends the rest when it has received more', async () => {
  await using pair = await openRelayPair(database, 'ahead')
  const whole = Stream.read(
    await pair.atOne.begin('[[say One.]][[wait ahead-1]][[say Two.]][[wait ahead-2]][[say 三。]]'),
  )
  const [client, other] = [new PositionClient(), await Stream.open(pair.atTwo)]
  await other.until('One.')
  const first = await Stream.open(pair.atOne, client)
  using writes = pair.holdWrites(() => true)
  pair.one.emulator.release('ahead-1')
  await first.until('One.Two.')
  first.leave()
  await first.done
  const moved = await Stream.openOnce(pair.atTwo, { client })
  expect([moved.status, other.text]).toEqual([200, 'One.'])
  pair.one.emulator.release('ahead-2')
  await whole.until('One.Two.三。')
  writes[Symbol.dispose]()
  await Promise.all([whole.done, moved.done])
  expect(joinDeltas(client.chunks)).toEqual(joinDeltas(whole.chunks))
})

test('[RL22] while a turn runs on another server, its message is not among the stored ones', async () => {
  await using pair = await openRelayPair(database, 'unfinished')
  const whole = Stream.read(
    await pair.atOne.begin(
      '[[say One.]][[call look {"to":"花子","amount":1}]][[then]][[say Two.]][[wait gate]]',
    ),
  )
  await whole.until('Two.')
  await expect
    .poll(
      async () => JSON.parse((await pair.atTwo.get('/chats/unfinished/messages')).body) as unknown,
    )
    .toMatchObject({ running: true, messages: [{ role: 'user' }] })
  const followed = await Stream.open(pair.atTwo)
  await followed.until('Two.')
  expect((await pair.atTwo.messages()).map(({ role }) => role)).toEqual(['user'])
  pair.one.emulator.release('gate')
  await Promise.all([whole.done, followed.done])
  expect(followed.message).toEqual(whole.message)
})

test('[RL20] when a chat is deleted, what was said in it leaves the relay at once', async () => {
  await using pair = await openRelayPair(database, 'deleted')
  const secrets = () => database.run(`SELECT FROM relay_rows WHERE lines LIKE '%Secret%'`)
  expect((await pair.atOne.say('[[say Secret one.]]')).status).toBe(200)
  const running = Stream.read(await pair.atOne.begin('[[say Secret two.]][[wait never]]'))
  await running.until('Secret two.')
  await expect.poll(async () => (await secrets()).length).toBeGreaterThan(1)
  // The other server deletes it.
  const { status } = await fetch(`${pair.two.url}/chats/deleted`, {
    method: 'DELETE',
    headers: { 'x-user': pair.atTwo.user },
  })
  expect(status).toBe(204)
  expect(await secrets()).toEqual([])
  await running.done
  expect(await secrets()).toEqual([])
})

test('[RL6] a turn is stopped on another server, and its text so far is kept', async () => {
  await using pair = await openRelayPair(database, 'stopped')
  const whole = Stream.read(await pair.atOne.begin('[[say Half.]][[wait never]]'))
  await whole.until('Half.')
  await expect
    .poll(() => database.run(`SELECT FROM relay_turns WHERE chat_id = 'stopped'`))
    .toHaveLength(1)
  expect((await pair.atTwo.post('/chats/stopped/stop', {})).status).toBe(204)
  await whole.done
  expect(whole.chunks.map(({ type }) => type)).toContain('abort')
  const [, message] = await pair.atTwo.messages()
  expect(message).toMatchObject({ metadata: { stopped: true } })
  expect(textOf(message)).toBe('Half.')
  expect((await pair.atTwo.say('[[say Next.]]')).body).toContain('Next.')
})

test.each([
  { name: 'while the end of the turn before is not written', isOld: true },
  { name: 'while nothing of it is written', isOld: false },
])('[RL6] a turn after a decision is stopped on another server, $name', async ({ isOld }) => {
  const chatId = `decided-${isOld}`
  const [started, gate] = [defer(), defer()]
  const reached = async () => {
    started.resolve()
    await gate.promise
  }
  await using pair = await openRelayPair(database, chatId, { reached })
  const count = async (condition = 'TRUE') =>
    (await database.run(`SELECT FROM relay_turns WHERE chat_id = '${chatId}' AND ${condition}`))
      .length
  const findLock = async () =>
    (await database.run(`SELECT token FROM chat_locks WHERE chat_id = '${chatId}'`))[0]?.['token']
  const call = '[[say Wait.]][[wait begun]][[call pay {"to": "花子", "amount": 50}]]'
  const asking = pair.atOne.ask(call)
  await expect.poll(() => count()).toBe(1)
  using writes = pair.holdWrites((updates) => isOld && updates.some(({ ended }) => ended))
  pair.one.emulator.release('begun')
  const { approvalId } = await asking
  await expect.poll(() => count(`ended_at IS ${isOld ? '' : 'NOT '}NULL`)).toBe(1)
  writes.holdAll()
  expect((await pair.atOne.decide(approvalId, { approved: true })).status).toBe(200)
  await started.promise
  const lock = await findLock()
  expect(lock).toBeDefined()
  const { status } = await pair.atTwo.post(`/chats/${chatId}/stop`, {})
  // The tool ignores the signal, and the turn ends without it. A sweep may have locked the chat since then.
  const isStopped = (await findLock()) !== lock
  gate.resolve()
  expect({ status, isStopped }).toEqual({ status: 204, isStopped: true })
})

test('[TU901] a message that is sent again at another server starts no other turn there', async () => {
  await using pair = await openRelayPair(database, 'repeated')
  const script = '[[say Half.]][[wait end]][[say Whole.]]'
  const first = Stream.read(await pair.atOne.begin(script, 'message-1'))
  await first.until('Half.')
  // Its client has lost the connection.
  first.leave()
  const second = Stream.read(await pair.atTwo.begin(script, 'message-1'))
  await second.until('Half.')
  pair.one.emulator.release('end')
  await second.until('Whole.')
  const again = await pair.atTwo.begin(script, 'message-1')
  expect(await again.text()).toContain('Whole.')
  expect((await pair.atTwo.messages()).map(({ role }) => role)).toEqual(['user', 'assistant'])
  expect(pair.two.emulator.requests).toEqual([])
})

test('[RL22] a chat is shown as running on another server before its turn can be read there', async () => {
  await using pair = await openRelayPair(database, 'unpublished')
  using writes = pair.holdWrites(() => true)
  const first = Stream.read(await pair.atOne.begin('[[say Half.]][[wait end]]'))
  await first.until('Half.')
  const shown = pair.atTwo.get('/chats/unpublished/messages')
  // The turn is published while the request waits for it. Without a wait, it has been answered long before.
  await Promise.race([shown, delay(100)])
  writes[Symbol.dispose]()
  expect(JSON.parse((await shown).body)).toMatchObject({ running: true })
  pair.one.emulator.release('end')
  await first.until('Half.')
})

test.each([
  ['can be read there', 'unread'],
  ['cannot be read there yet', 'unwritten'],
])(
  '[RL24] a message to a chat whose turn runs on another server without a reader, and %s, stops that turn',
  async (_what, chatId) => {
    await using pair = await openRelayPair(database, chatId)
    using writes = pair.holdWrites(() => chatId === 'unwritten')
    const first = Stream.read(await pair.atOne.begin('[[say Half.]][[wait never]]'))
    await first.until('Half.')
    first.leave()
    // Until the first server has noticed that its reader left, the message is refused.
    const next = async () => (await pair.atTwo.say('[[say Next.]]')).body
    await expect.poll(next).toContain('Next.')
    const messages = await pair.atTwo.messages()
    expect(messages.map(textOf)).toEqual([expect.any(String), 'Half.', expect.any(String), 'Next.'])
    writes[Symbol.dispose]()
  },
)

test('[RL24] a message is rejected while the only reader of the running turn is on another server', async () => {
  await using pair = await openRelayPair(database, 'read')
  const first = Stream.read(await pair.atOne.begin('[[say Half.]][[wait gate]][[say Rest.]]'))
  await first.until('Half.')
  const reader = await Stream.open(pair.atTwo)
  await expect
    .poll(() =>
      database.run(
        `SELECT FROM relay_readers JOIN relay_turns USING (turn_id) WHERE chat_id = 'read'`,
      ),
    )
    .toHaveLength(1)
  first.leave()
  // The request of the second server lets the first one look for readers. By itself, the first one learns of them a moment later.
  expect(await pair.atTwo.say('[[say Next.]]')).toMatchObject({ status: 409, code: 'turn-running' })
  expect(await pair.atOne.say('[[say Next.]]')).toMatchObject({ status: 409, code: 'turn-running' })
  pair.one.emulator.release('gate')
  await reader.done
  expect(reader.text).toBe('Half.Rest.')
})

test('[RL25] [PO3] feeds report turns of other servers when they start and end, and what is stored then', async () => {
  await using pair = await openRelayPair(database, 'reported')
  await pair.atTwo.say('[[say Before.]]')
  const headers = { 'x-user': 'hanako' }
  const feed = await fetch(`${pair.two.url}/events`, { headers })
  const ofChat = await fetch(`${pair.two.url}/chats/reported/events`, { headers })
  const answer = await pair.atOne.say('[[say After.]]')
  const messageId = answer.chunks[0]?.['messageId']
  const isTurn = (event: Record<string, unknown>): boolean =>
    event['type'] === 'turn' && event['messageId'] === messageId
  const ofTurn = await readUntil(ofChat, (_event, all) => all.some(isTurn) && all.some(isStored))
  const loaded = await fetch(`${pair.two.url}/chats/reported/messages`, { headers })
  expect(ofTurn.findLast(isStored)).toEqual({ type: 'stored', position: await positionIn(loaded) })
  // The end changes the list of chats once more.
  const seen = await readUntil(feed, (event, all) => event['type'] === 'chat' && all.some(isTurn))
  expect(seen.at(-1)).toEqual({ type: 'chat', chatId: 'reported' })
})

function isStored({ type }: Record<string, unknown>): boolean {
  return type === 'stored'
}

async function positionIn(response: Response): Promise<unknown> {
  return ((await response.json()) as { position: string }).position
}

test('[RL30] what a crashed server has streamed is stored once, and its turn ends', async () => {
  // A repeated test does not find the rows of its first attempt.
  const chatId = `crashed-${randomUUID()}`
  await using pair = await openRelayPair(database, chatId)
  const { chunks } = await pair.atTwo.say('[[say Stored.]]')
  const messageId = String(chunks[0]?.['messageId'])
  const chat = { appName: 'adk-stream-protocol', principalId: 'hanako', chatId }
  // If this turn were written after the next ones, it would be the newest one.
  await untilEndWritten(chatId)
  // The state after a server was killed between two writes: the session has the first text, the rows have more or less.
  const rows = { chat, messageId, replayable: true, seq: 1, ended: false }
  const streamed = { ...rows, turnId: `${chatId}-1` }
  const lines = [
    { type: 'start', messageId },
    { type: 'text-start', id: '1' },
    { type: 'text-delta', id: '1', delta: 'Sto' },
  ].map((chunk) => JSON.stringify(chunk))
  await pair.relay.write([{ ...streamed, lines }], { owner: 'killed', watched: [] })
  const more = ['red.', ' And more.'].map((delta) =>
    JSON.stringify({ type: 'text-delta', id: '1', delta }),
  )
  const second = { ...streamed, turnId: `${chatId}-2`, lines: [...lines, ...more] }
  const reader = await Stream.open(pair.atTwo)
  await age(`${chatId}-1`)
  await reader.done
  expect(reader.chunks.at(-1)?.type).toBe('error')
  expect((await pair.atOne.messages()).map(textOf)).toEqual(['[[say Stored.]]', 'Stored.'])
  await pair.relay.write([second], { owner: 'killed', watched: [] })
  await age(`${chatId}-2`)
  const readMessage = async () => (await pair.atOne.messages())[1]
  await expect.poll(async () => textOf(await readMessage())).toBe('Stored. And more.')
  const message = await readMessage()
  expect(message).toMatchObject({ metadata: { stopped: true } })
  expect((await pair.atOne.say('[[say Next.]]')).body).toContain('Next.')
})

test('[RL555] a server that has lost a chat without noticing sends the turn of the server that has it', async () => {
  await using pair = await openRelayPair(database, 'lost')
  const old = Stream.read(await pair.atOne.begin('[[say Old.]][[wait gate]]'))
  await old.until('Old.')
  const chat = { appName: 'adk-stream-protocol', principalId: 'hanako', chatId: 'lost' }
  const running = await vi.waitUntil(() => pair.relay.find(chat), { timeout: 120_000 })
  // The state after another server has taken over the chat while this one was suspended.
  await database.run(
    `UPDATE chat_locks SET token = 'other', worker = 'other' WHERE chat_id = 'lost'`,
  )
  await pair.relay.end(running.turnId, [])
  const lines = [
    { type: 'start', messageId: 'new' },
    { type: 'text-start', id: '1' },
    { type: 'text-delta', id: '1', delta: 'New.' },
  ].map((chunk) => JSON.stringify(chunk))
  const turn = { turnId: 'lost-1', chat, messageId: 'new', replayable: true, seq: 1, ended: false }
  await pair.relay.write([{ ...turn, lines }], { owner: 'other', watched: [] })
  const moved = await Stream.open(pair.atOne)
  await moved.until('New.')
  expect(moved.chunks[0]).toMatchObject({ type: 'start', messageId: 'new' })
  await pair.relay.end('lost-1', [])
  pair.one.emulator.release('gate')
  await Promise.all([old.done, moved.done])
})

test.each([
  { held: 'for a request', background: false, ended: false },
  { held: 'in the background', background: true, ended: false },
  { held: 'in the background', background: true, ended: true },
])(
  '[RL555] [RL556] a turn that is written late does not hide the turn of the server that has the chat $held; ended: $ended',
  async ({ background, ended }) => {
    const chatId = `late-${background}-${ended}`
    await using pair = await openRelayPair(database, chatId)
    const own = Stream.read(await pair.atOne.begin('[[say Own.]][[wait gate]]'))
    const chat = { appName: 'adk-stream-protocol', principalId: 'hanako', chatId }
    const running = await vi.waitUntil(() => pair.relay.find(chat), { timeout: 120_000 })
    await database.run('UPDATE chat_locks SET background = $1 WHERE chat_id = $2', [
      background,
      chatId,
    ])
    const turn = { turnId: `${chatId}-1`, chat, messageId: 'late', replayable: true, seq: 1, ended }
    await pair.relay.write([{ ...turn, lines: [] }], { owner: 'late', watched: [] })
    expect(await pair.relay.find(chat)).toEqual(running)
    await pair.relay.end(turn.turnId, [])
    pair.one.emulator.release('gate')
    await own.done
  },
)

test.each([
  { owner: 'another server', isOwn: false },
  { owner: 'the same server', isOwn: true },
])(
  '[RL556] a turn of $owner whose end is written late is not read in the place of the next turn',
  async ({ isOwn }) => {
    await using pair = await openRelayPair(database, `next-${isOwn}`)
    const chat = { appName: 'adk-stream-protocol', principalId: 'hanako', chatId: `next-${isOwn}` }
    await pair.atOne.say('[[say Before.]]')
    await untilEndWritten(chat.chatId)
    const [row] = await database.run(
      `SELECT owner FROM relay_turns WHERE chat_id = '${chat.chatId}'`,
    )
    const late = { turnId: chat.chatId, chat, messageId: 'old', replayable: true, ended: false }
    const lines = [JSON.stringify({ type: 'start', messageId: 'old' })]
    await pair.relay.write([{ ...late, seq: 1, lines }], {
      owner: isOwn ? String(row?.['owner']) : 'slow',
      watched: [],
    })
    const first = Stream.read(await pair.atOne.begin('[[say Next.]][[wait gate]][[say Rest.]]'))
    // The client loses its connection before the new turn has been written.
    const moved = await Stream.open(pair.atTwo)
    await moved.until('Next.')
    expect(moved.chunks[0]).toEqual(first.chunks[0])
    pair.one.emulator.release('gate')
    await Promise.all([first.done, moved.done])
    expect(moved.message).toEqual(first.message)
    // The next turn has ended, the late end is still missing.
    expect(await pair.relay.find(chat)).toBeUndefined()
    await pair.relay.end(chat.chatId, [])
  },
)

/** Resolves when the end of a turn of a chat is written. A server writes it after the reply. */
async function untilEndWritten(chatId: string): Promise<void> {
  const find = () =>
    database.run('SELECT FROM relay_turns WHERE chat_id = $1 AND ended_at IS NOT NULL', [chatId])
  await expect.poll(find).toHaveLength(1)
}

/** Lets the lease of the server of a turn expire. */
async function age(turnId: string): Promise<void> {
  await database.run(
    `UPDATE relay_workers SET seen_at = 'epoch' WHERE worker = (SELECT owner FROM relay_turns WHERE turn_id = $1)`,
    [turnId],
  )
}

test('[RL21] [RL6] [RL30] between two processes, a turn is read and stopped, and the text of a killed one is kept', async () => {
  const children = await bundleChildren()
  await using folder = await makeFolder()
  const env = { DATABASE_URL: database.url, GRACE_MS: '60000' }
  await using one = children.start(folder, 'one', env)
  await using two = children.start(folder, 'two', env)
  const [urlOne, urlTwo] = await Promise.all([one.serve(), two.serve()])
  const atOne = new Person(urlOne, { chatId: 'processes' })
  const atTwo = new Person(urlTwo, { chatId: 'processes' })
  const first = Stream.read(await atOne.begin('[[say One.]][[wait a]][[say Two.]][[wait never]]'))
  await first.until('One.')
  const reader = await Stream.open(atTwo)
  one.writeLine('release a')
  await reader.until('Two.')
  expect((await atTwo.post('/chats/processes/stop', {})).status).toBe(204)
  await Promise.all([first.done, reader.done])
  expect(reader.message).toEqual(first.message)

  const second = Stream.read(await atOne.begin('[[say Half of it.]][[wait never]]'))
  await second.until('Half of it.')
  const survivor = await Stream.open(atTwo)
  await survivor.until('Half of it.')
  await one.kill()
  await postgresLeaseTimes(database).expire()
  await survivor.done
  expect(survivor.text).toBe('Half of it.')
  expect(survivor.chunks.at(-1)).toMatchObject({ type: 'error' })
  const message = (await atTwo.messages()).at(-1)
  expect(textOf(message)).toBe('Half of it.')
  expect(message).toMatchObject({ metadata: { stopped: true } })
  expect((await atTwo.say('[[say Next.]]')).body).toContain('Next.')
})
