import { once } from 'node:events'
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import Database from 'libsql'
import { expect, test } from 'vitest'

import { Ledger } from '../../src/approvals/ledger.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { chat, hanako, requestOf, taken } from '../ledger/support/fixture.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import {
  type TemporaryDirectory,
  temporaryDirectory,
} from '../../../../test/support/temporary-directory.ts'
import { idsOf, key, readSession, textEvent } from '../../src/store/contract/fixtures.ts'
import { refusal } from './support/subjects.ts'
import { serve } from '../support/serve.ts'

/** A store in a file, and another connection that acquires and releases the write lock. */
async function openContended(folder: TemporaryDirectory, busyTimeoutMs = 60_000) {
  const path = folder.file('s.db')
  const store = await openSqliteStore({ path, busyTimeoutMs })
  const other = new Database(path)
  return {
    store,
    lock: () => other.exec('BEGIN EXCLUSIVE'),
    unlock: () => other.exec('COMMIT'),
    [Symbol.asyncDispose]: async () => {
      other.close()
      await store.close()
    },
  }
}

/** Resolves after this many turns of the event loop. Never resolves while it is blocked. */
async function turnsOfTheLoop(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await nextTurn()
}

test('[ST90] a write waits for a locked database without blocking the process, and reads do not wait', async () => {
  await using folder = await temporaryDirectory()
  await using contended = await openContended(folder)
  const { store, lock, unlock } = contended
  const session = await store.sessions.createSession(key)
  lock()
  let isDone = false
  const append = store.sessions
    .appendEvent({ session, event: textEvent('event-1') })
    .finally(() => (isDone = true))
  await turnsOfTheLoop(50)
  expect(idsOf(await readSession(store.sessions))).toEqual([])
  expect(isDone).toBe(false)
  unlock()
  await append
  expect(idsOf(await readSession(store.sessions))).toEqual(['event-1'])
})

test('[ST90] every kind of write waits for another process', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('s.db')
  await using store = await openSqliteStore({ path, busyTimeoutMs: 60_000 })
  await store.sessions.createSession(key)
  const child = spawn(process.execPath, ['--input-type=module', '--eval', HOLD, path], {
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exit = once(child, 'exit')
  await once(child.stdout, 'data')
  const lock = { worker: 'w', token: 't', leaseMs: 1_000, background: false }
  const works = [
    store.secret('signing'),
    store.sessions.getOrCreateSession({ ...key, sessionId: 'chat-2' }),
    store.sessions.deleteSession(key),
    store.approvals.lockChat(chat, lock),
    store.approvals.heartbeat('w'),
    store.approvals.deleteChat(chat, 'deleted'),
    store.browserCalls.add({ chat, messageId: 'm', toolCallId: 'c' }, 1_000),
    store.chats.rename(chat, 'A name'),
  ]
  let done = 0
  for (const work of works) void work.then(() => (done += 1))
  await turnsOfTheLoop(50)
  expect(done).toBe(0)
  child.stdin.end()
  await Promise.all(works)
  expect(await exit).toEqual([0, null])
})

/** Locks the given database until its input ends. */
const HOLD = `
  import Database from 'libsql'
  const database = new Database(process.argv[1])
  database.exec('BEGIN EXCLUSIVE')
  console.log('held')
  process.stdin.on('end', () => database.exec('COMMIT')).resume()
`

test('[ST91] waiting writes keep their order, and run before later ones', async () => {
  await using folder = await temporaryDirectory()
  await using contended = await openContended(folder)
  const { store, lock, unlock } = contended
  const session = await store.sessions.createSession(key)
  const ids = Array.from({ length: 40 }, (_, index) => `event-${index}`)
  const append = (id: string) =>
    store.sessions.appendEvent({ session, event: textEvent(id) }).then(() => undefined)
  lock()
  const first = ids.slice(0, 20).map(append)
  await turnsOfTheLoop(20)
  unlock()
  await Promise.all([...first, ...ids.slice(20).map(append)])
  expect(idsOf(await readSession(store.sessions))).toEqual(ids)
  expect(idsOf(session)).toEqual(ids)
})

test('[ST91] a write that waits too long fails with `busy`, changes nothing, and later ones succeed', async () => {
  await using folder = await temporaryDirectory()
  await using contended = await openContended(folder, 50)
  const { store, lock, unlock } = contended
  const session = await store.sessions.createSession(key)
  lock()
  const refused = ['event-1', 'event-2'].map((id) =>
    store.sessions.appendEvent({ session, event: textEvent(id) }),
  )
  for (const append of refused) await expect(append).rejects.toEqual(refusal('busy'))
  unlock()
  await store.sessions.appendEvent({ session, event: textEvent('event-3') })
  expect(idsOf(await readSession(store.sessions))).toEqual(['event-3'])
})

test('[ST90] reads and transactions work while a single statement waits for a lock, and after it has failed', async () => {
  await using folder = await temporaryDirectory()
  await using contended = await openContended(folder, 500)
  const { store, lock, unlock } = contended
  const session = await store.sessions.createSession(key)
  lock()
  const lease = { worker: 'w', token: 'w/1', leaseMs: 60_000, background: false }
  const failed = store.approvals.lockChat(chat, lease).catch((error: unknown) => error)
  await turnsOfTheLoop(5)
  expect(idsOf(await readSession(store.sessions))).toEqual([])
  expect(await failed).toEqual(refusal('busy'))
  expect(idsOf(await readSession(store.sessions))).toEqual([])
  unlock()
  await store.sessions.appendEvent({ session, event: textEvent('event-1') })
  expect(idsOf(await readSession(store.sessions))).toEqual(['event-1'])
})

test('[ST31] [ST91] a write that is waiting when the store closes fails with `closed`', async () => {
  await using folder = await temporaryDirectory()
  await using contended = await openContended(folder)
  const { store, lock, unlock } = contended
  lock()
  const waiting = store.secret('signing')
  await turnsOfTheLoop(2)
  await store.close()
  await expect(waiting).rejects.toEqual(refusal('closed'))
  unlock()
})

test('[ST93] with a locked database a request gets 503 with Retry-After, a frame gets an error, and /health is unaffected', async () => {
  await using folder = await temporaryDirectory()
  await using contended = await openContended(folder, 300)
  const { store, lock, unlock } = contended
  await using server = await serve({ store })
  const browser = server.browser()
  expect(await (await browser.say('Hello')).text()).toContain('[DONE]')
  await using client = await SocketClient.open(server.url)
  lock()
  const refused = browser.say('Hello again')
  client.say('Hello')
  expect((await fetch(`${server.url}/health`)).status).toBe(200)
  const response = await refused
  expect(response.status).toBe(503)
  expect(response.headers.get('retry-after')).toBe('1')
  expect(await response.json()).toMatchObject({ error: { code: 'unavailable' } })
  expect(await client.nextOf('error', 'r1')).toMatchObject({ code: 'unavailable' })
  unlock()
  expect(await (await browser.say('Hello at last')).text()).toContain('[DONE]')
})

test('[LG82] the outcome of a tool is recorded even if the database is locked for longer than a request waits', async () => {
  await using folder = await temporaryDirectory()
  const busyTimeoutMs = 50
  await using contended = await openContended(folder, busyTimeoutMs)
  const { store, lock, unlock } = contended
  const ledger = new Ledger({ store: store.approvals, appName: 'demo' })
  const asked = taken(await ledger.request(requestOf()))
  taken(await ledger.decide(asked.id, { by: hanako, approved: true }))
  taken(await ledger.claim(asked.id, asked))
  lock()
  const recorded = ledger.succeed(asked.id, { paid: true })
  await delay(busyTimeoutMs * 3)
  unlock()
  expect(await recorded).toMatchObject({ state: { name: 'succeeded' } })
})

test('[ST18] a long session is read page by page, and contains events that are written meanwhile', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('s.db')
  const ids = Array.from({ length: 2_000 }, (_, index) => `event-${index}`)
  await using writer = await openSqliteStore({ path })
  const session = await writer.sessions.createSession(key)
  for (const id of ids) {
    session.events.length = 0
    const text = 'a word '.repeat(200)
    const content = { role: 'user', parts: [{ text }] }
    await writer.sessions.appendEvent({ session, event: textEvent(id, { content }) })
  }
  for (const sessions of [1_000, 0]) {
    await using reader = await openSqliteStore({ path, cache: { sessions } })
    const read = reader.sessions.getSession(key)
    await writer.sessions.appendEvent({ session, event: textEvent(`late-${sessions}`) })
    ids.push(`late-${sessions}`)
    const turns = await countTurns(read)
    expect(idsOf((await read) ?? session)).toEqual(ids)
    expect(turns).toBeGreaterThan(1)
  }
})

/** Counts the turns of the event loop during a promise. */
async function countTurns(work: Promise<unknown>): Promise<number> {
  const counter = { turns: 0, isDone: false }
  void work.finally(() => (counter.isDone = true))
  for (; !counter.isDone; counter.turns += 1) await nextTurn()
  return counter.turns
}
