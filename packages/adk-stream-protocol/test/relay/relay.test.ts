import { createConnection, createServer, type Socket } from 'node:net'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { listen } from '../../../../test/support/listen.ts'
import { STOP_TURN } from '../../src/relay/server-requests.ts'
import { findUnstored } from '../../src/agent/tree/interrupted-turn.ts'
import type { Turn } from '../../src/turns/turn.ts'
import { defer } from '../support/agents.ts'
import type { TestDatabase } from '../support/postgres.ts'
import {
  CHAT,
  createRelayDatabase,
  createTurn,
  Reading,
  say,
  startRelay,
  type TestRelay,
} from './support/relays.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createRelayDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

let count = 0
/** A chat that no other test uses. */
function newChat(): typeof CHAT {
  count += 1
  return { ...CHAT, chatId: `chat-${count}` }
}

async function openUntilFound({ turns }: TestRelay, chat: typeof CHAT): Promise<Turn> {
  let found: Turn | undefined
  await expect.poll(async () => (found = await turns.open(chat))).toBeDefined()
  if (!found) throw new Error('The turn was found.')
  return found
}

test('[RL1] a reader on another server receives the whole turn, and follows it', async () => {
  await using one = await startRelay(database, 'one')
  await using two = await startRelay(database, 'two')
  const chat = newChat()
  const turn = createTurn()
  one.turns.publish(chat, turn)
  turn.log.append({ type: 'start', messageId: turn.messageId })
  turn.log.append({ type: 'text-start', id: 't1' })
  for (const word of ['One ', 'two ', '三\u0000\ud83d']) say(turn, word)
  const mirrored = await openUntilFound(two, chat)
  expect(mirrored.messageId).toBe(turn.messageId)
  const reading = new Reading(mirrored)
  const other = new Reading(mirrored)
  await expect.poll(() => reading.text).toBe('One two 三\u0000\ud83d')
  say(turn, '\ude00 end.')
  await expect.poll(() => reading.text).toBe('One two 三\u0000😀 end.')
  turn.log.append({ type: 'text-end', id: 't1' })
  turn.log.end()
  await expect.poll(() => reading.end).toBe('ended')
  const local = new Reading(turn)
  expect(reading.text).toBe(local.text)
  expect(reading.chunks.at(-1)).toEqual({ type: 'text-end', id: 't1' })
  expect(other.text).toBe(local.text)
  expect(await two.turns.open(chat)).toBeUndefined()
  expect([...one.errors, ...two.errors]).toEqual([])
})

test('[RL2] many turns are written together, with no more than one transaction per interval', async () => {
  await using one = await startRelay(database, 'one', { timing: { flushMs: 20 } })
  const writes: number[] = []
  const write = one.relay.write.bind(one.relay)
  one.relay.write = (updates, options) => {
    writes.push(updates.length)
    return write(updates, options)
  }
  const turns = Array.from({ length: 20 }, (_, index) => {
    const turn = createTurn(`many-${index}`)
    one.turns.publish(newChat(), turn)
    return turn
  })
  for (const turn of turns) for (let word = 0; word < 100; word += 1) say(turn, `${word} `)
  await expect.poll(() => writes.length).toBe(1)
  expect(writes).toEqual([20])
  const countRows = () =>
    database.run(
      `SELECT count(*)::int AS count FROM relay_rows JOIN relay_turns USING (turn_id) WHERE message_id LIKE 'many-%'`,
    )
  await expect.poll(countRows).toEqual([{ count: 20 }])
  for (const turn of turns) turn.log.end()
})

test('[RL3] a client on another server starts to read after an approval that it has seen', async () => {
  await using one = await startRelay(database, 'one')
  await using two = await startRelay(database, 'two')
  const chat = newChat()
  const turn = createTurn()
  one.turns.publish(chat, turn)
  say(turn, 'Before. ')
  turn.log.markPause('approval-1')
  say(turn, 'Between. ')
  turn.log.markPause()
  say(turn, 'After.')
  const mirrored = await openUntilFound(two, chat)
  await expect.poll(() => new Reading(mirrored).text).toBe('Before. Between. After.')
  expect(new Reading(mirrored, { after: 'approval-1' }).text).toBe('Between. After.')
  expect(new Reading(mirrored, 'pause').text).toBe('After.')
  turn.log.end()
})

test('[RL4] a turn that is too long to be replayed cannot be read on another server, and its readers there are disconnected', async () => {
  await using one = await startRelay(database, 'one')
  await using two = await startRelay(database, 'two')
  const chat = newChat()
  const turn = createTurn()
  one.turns.publish(chat, turn)
  say(turn, 'Short.')
  const reading = new Reading(await openUntilFound(two, chat))
  for (let piece = 0; piece < 11; piece += 1) say(turn, 'x'.repeat(100_000))
  await expect.poll(() => reading.end).toBe('abandoned')
  expect(await two.turns.open(chat)).toBeUndefined()
  turn.log.end()
  await expect.poll(() => one.turns.find(chat)).toBeUndefined()
})

test('[RL5] a turn whose only reader is on another server is not stopped; without readers on any server it is', async () => {
  await using one = await startRelay(database, 'one')
  await using two = await startRelay(database, 'two')
  const chat = newChat()
  const turn = createTurn('message-1', 0)
  one.turns.publish(chat, turn)
  const first = new Reading(turn)
  say(turn, 'One.')
  const second = new Reading(await openUntilFound(two, chat))
  // Two readers: the one here, and the one that stands for the other server.
  await expect.poll(() => one.relay.watched('one', 15_000)).not.toHaveLength(0)
  say(turn, 'Two.')
  await expect.poll(() => second.text).toBe('One.Two.')
  first.leave()
  expect(turn.signal.aborted).toBe(false)
  second.leave()
  await expect.poll(() => turn.signal.aborted).toBe(true)
})

test('[RL5] a server that crashed does not keep the turns of other servers running', async () => {
  await using one = await startRelay(database, 'one', { timing: { pollMs: 20 } })
  const chat = newChat()
  const turn = createTurn('message-1', 0)
  one.turns.publish(chat, turn)
  say(turn, 'One.')
  await expect.poll(() => one.relay.find(chat)).toBeDefined()
  const found = await one.relay.find(chat)
  if (!found) throw new Error('The turn was found.')
  // The other server records that it reads the turn, and never again.
  await one.relay.watch('crashed', [found])
  await expect.poll(() => turn.log.hasReaders).toBe(true)
  await database.run(`UPDATE relay_readers SET seen_at = 'epoch' WHERE worker = 'crashed'`)
  await expect.poll(() => turn.signal.aborted).toBe(true)
})

test('[RL6] a turn is stopped from another server, which waits until it is settled', async () => {
  await using one = await startRelay(database, 'one')
  await using two = await startRelay(database, 'two')
  const chat = newChat()
  const turn = createTurn()
  one.turns.publish(chat, turn)
  const reading = new Reading(turn)
  say(turn, 'Half.')
  await expect.poll(() => two.turns.find(chat)).toBeDefined()
  const stop = (ifUnwatched: boolean) =>
    two.turns.ask('one', STOP_TURN, { turnId: turn.id, ifUnwatched })
  expect(await stop(true)).toBe(false)
  expect(turn.signal.aborted).toBe(false)
  expect(await stop(false)).toBe(true)
  expect(turn.signal.aborted).toBe(true)
  expect(reading.end).toBe('ended')
})

test('[RL6] a server that does not answer in time makes the request fail with unavailable', async () => {
  await using one = await startRelay(database, 'one')
  await using two = await startRelay(database, 'two', { timing: { answerMs: 50 } })
  const chat = newChat()
  const turn = createTurn()
  one.turns.publish(chat, turn)
  say(turn, 'Half.')
  await expect.poll(() => two.turns.find(chat)).toBeDefined()
  one.relay.take = async () => []
  const stopped = two.turns.ask('one', STOP_TURN, { turnId: turn.id, ifUnwatched: false })
  await expect(stopped).rejects.toMatchObject({ code: 'unavailable', status: 503 })
  turn.log.end()
})

test('[RL8] a server that changed approvals makes the other servers read them at once', async () => {
  const isTold = defer()
  await using one = await startRelay(database, 'one')
  await using two = await startRelay(database, 'two')
  await using three = await startRelay(database, 'three', { onApprovals: isTold.resolve })
  one.turns.notifyApprovals()
  await isTold.promise
  expect([...two.errors, ...three.errors]).toEqual([])
})

test('[RL8] changes of approvals in short succession are announced together', async () => {
  await using one = await startRelay(database, 'one')
  const notify = one.relay.notify.bind(one.relay)
  const isWriting = defer()
  const mayWrite = defer()
  let written = 0
  one.relay.notify = async (hint) => {
    written += 1
    isWriting.resolve()
    await mayWrite.promise
    await notify(hint)
  }
  for (let change = 0; change < 10; change += 1) one.turns.notifyApprovals()
  await isWriting.promise
  // A change after a hint was sent needs another one.
  for (let change = 0; change < 10; change += 1) one.turns.notifyApprovals()
  mayWrite.resolve()
  await expect.poll(() => written).toBe(2)
  expect(one.errors).toEqual([])
})

test('[RL10] after the LISTEN connection was terminated, a reader receives what was written meanwhile', async () => {
  await using one = await startRelay(database, 'one')
  await using gate = await startGate(database.url)
  await using two = await startRelay(database, 'two', { listen: { listenUrl: gate.url } })
  const chat = newChat()
  const turn = createTurn()
  one.turns.publish(chat, turn)
  say(turn, 'One.')
  const reading = new Reading(await openUntilFound(two, chat))
  for (const word of ['a', 'b', 'c']) {
    say(turn, word)
    await expect.poll(() => reading.text.at(-1)).toBe(word)
  }
  // Nothing connects until the gate is open again, so all hints about the second text are lost.
  gate.close()
  await database.run(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY ($1)`,
    [await gate.pids()],
  )
  say(turn, 'Two.')
  await expect
    .poll(async () =>
      (await one.relay.read([{ turnId: await idOf(one, chat), seq: 0 }]))[0]?.lines.at(-1),
    )
    .toContain('Two.')
  gate.open()
  await expect.poll(() => reading.text).toBe('One.abcTwo.')
  turn.log.end()
})

test('[RL11] a LISTEN connection that died without an error is noticed and replaced', async () => {
  await using one = await startRelay(database, 'one')
  await using gate = await startGate(database.url)
  await using two = await startRelay(database, 'two', {
    listen: { listenUrl: gate.url, probeMs: 20, timeoutMs: 500 },
  })
  const chat = newChat()
  const turn = createTurn()
  one.turns.publish(chat, turn)
  say(turn, 'One.')
  const reading = new Reading(await openUntilFound(two, chat))
  // The connection stays open, and nothing passes any more.
  gate.freeze()
  say(turn, 'Two.')
  await expect.poll(() => reading.text).toBe('One.Two.')
  await expect.poll(() => gate.connections).toBeGreaterThan(1)
  turn.log.end()
})

test('[RL12] a proxy that drops LISTEN is reported once, and turns are read at a shorter interval', async () => {
  await using one = await startRelay(database, 'one')
  await using gate = await startGate(database.url, { dropsListen: true })
  await using two = await startRelay(database, 'two', {
    listen: { listenUrl: gate.url, timeoutMs: 50 },
    timing: { fastPollMs: 20 },
  })
  const chat = newChat()
  const turn = createTurn()
  one.turns.publish(chat, turn)
  say(turn, 'One.')
  const reading = new Reading(await openUntilFound(two, chat))
  say(turn, 'Two.')
  await expect.poll(() => reading.text).toBe('One.Two.')
  turn.log.end()
  await expect.poll(() => reading.end).toBe('ended')
  await expect.poll(() => gate.connections).toBeGreaterThan(1)
  expect(two.errors).toHaveLength(1)
  expect(String(two.errors[0])).toContain('PgBouncer')
})

test('[RL13] a write whose acknowledgement was lost is repeated without duplicates', async () => {
  await using one = await startRelay(database, 'one')
  await using two = await startRelay(database, 'two')
  const write = one.relay.write.bind(one.relay)
  let failures = 0
  one.relay.write = async (...given) => {
    const owned = await write(...given)
    failures += 1
    if (failures % 2 === 1) throw new Error('The acknowledgement was lost.')
    return owned
  }
  const chat = newChat()
  const turn = createTurn()
  one.turns.publish(chat, turn)
  say(turn, 'One.')
  const reading = new Reading(await openUntilFound(two, chat))
  say(turn, 'Two.')
  await expect.poll(() => reading.text).toBe('One.Two.')
  turn.log.end()
  await expect.poll(() => reading.end).toBe('ended')
  expect(reading.text).toBe('One.Two.')
})

test('[RL20] the rows of ended turns, and old signals, are removed', async () => {
  await using one = await startRelay(database, 'one')
  const chat = newChat()
  for (let index = 0; index < 30; index += 1) {
    const turn = createTurn(`old-${index}`)
    one.turns.publish(chat, turn)
    say(turn, 'Said.')
    turn.log.end()
  }
  const running = createTurn('running')
  one.turns.publish(chat, running)
  say(running, 'Still.')
  await one.relay.send('nobody', { id: `signal-${count}`, from: 'one', kind: 'stop', body: {} })
  await expect.poll(() => countTurns('old-%', 'ended_at IS NOT NULL')).toBe(30)
  await one.relay.removeEnded(60_000)
  expect(await countTurns('old-%')).toBe(30)
  await one.relay.removeEnded(0)
  expect(await countTurns('old-%')).toBe(0)
  await expect.poll(() => countTurns('running')).toBe(1)
  const left = await database.run(
    `SELECT (SELECT count(*) FROM relay_signals)::int AS signals,
      (SELECT count(*) FROM relay_rows LEFT JOIN relay_turns USING (turn_id) WHERE owner IS NULL)::int AS rows`,
  )
  expect(left).toEqual([{ signals: 0, rows: 0 }])
  running.log.end()
})

async function countTurns(messageId: string, condition = 'true'): Promise<unknown> {
  const [row] = await database.run(
    `SELECT count(*)::int AS count FROM relay_turns WHERE message_id LIKE $1 AND ${condition}`,
    [messageId],
  )
  return row?.['count']
}

async function idOf({ relay }: TestRelay, chat: typeof CHAT): Promise<string> {
  return (await relay.find(chat))?.turnId ?? ''
}

/** A TCP proxy in front of PostgreSQL. */
interface Gate extends AsyncDisposable {
  readonly url: string
  readonly connections: number
  /** Refuses new connections. */
  close(): void
  open(): void
  /** The current connections stay open, and pass on no more data. */
  freeze(): void
  /** The processes of the server behind the present connections. */
  pids(): Promise<unknown[]>
}

async function startGate(url: string, { dropsListen = false } = {}): Promise<Gate> {
  const target = new URL(url)
  const sockets = new Set<Socket>()
  const state = { isOpen: true, connections: 0 }
  const server = createServer((client) => {
    if (!state.isOpen) return client.destroy()
    state.connections += 1
    const upstream = createConnection(Number(target.port), target.hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
    }
    client.on('data', (data) => upstream.write(dropsListen ? withoutListen(data) : data))
    upstream.on('data', (data) => client.write(data))
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
    return undefined
  })
  const proxied = new URL(url)
  proxied.port = String(await listen(server))
  return {
    url: proxied.href,
    get connections() {
      return state.connections
    },
    close: () => {
      state.isOpen = false
    },
    open: () => {
      state.isOpen = true
    },
    freeze: () => {
      for (const socket of sockets) socket.removeAllListeners('data')
    },
    pids: async () => {
      const ports = [...sockets].map(({ localPort }) => localPort)
      const rows = await database.run(
        `SELECT pid FROM pg_stat_activity WHERE client_port = ANY ($1)`,
        [ports],
      )
      return rows.map(({ pid }) => pid)
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}

/** Replaces LISTEN by a query of the same length that does nothing, as a pooler does in effect. */
function withoutListen(data: Buffer): Buffer {
  const text = data.toString('latin1')
  return Buffer.from(text.replace(/LISTEN "(\w+)"/, `SELECT '$1'`), 'latin1')
}

const STORED: readonly (readonly [string, string, string, string])[] = [
  ['nothing of it is stored', 'One. Two.', '', 'One. Two.'],
  ['the beginning is stored', 'One. Two.', 'One. ', 'Two.'],
  ['all of it is stored', 'One. Two.', 'One. Two.', ''],
  ['more is stored than was written to the relay', 'One. ', 'One. Two.', ''],
  ['something else is stored', 'One. Two.', 'Zero. ', ''],
]

const chunksOf = (text: string, kind: 'text' | 'reasoning') =>
  text.split('').map((delta) => ({ type: `${kind}-delta` as const, id: kind, delta }))

test.each(STORED)('[RL30] if %s, only the rest is stored', (_when, streamed, stored, rest) => {
  const said = [...chunksOf('Think.', 'reasoning'), ...chunksOf(streamed, 'text')]
  const kept = [...chunksOf('Th', 'reasoning'), ...chunksOf(stored, 'text')]
  expect(findUnstored(said, kept)).toEqual([
    { text: 'ink.', thought: true },
    ...(rest === '' ? [] : [{ text: rest, thought: false }]),
  ])
})
