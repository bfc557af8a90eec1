import Database from 'libsql'
import { expect, test } from 'vitest'

import { Ledger } from '../../src/approvals/ledger.ts'
import { openSqliteStore } from '../../src/store/index.ts'
import { chat, hanako, requestOf, taken } from '../ledger/support/fixture.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { key, readSession, textEvent } from '../../src/store/contract/fixtures.ts'

const CHAT = { appName: key.appName, principalId: key.userId, chatId: key.sessionId }

function lock(token: string, leaseMs: number) {
  return { worker: `worker of ${token}`, token, leaseMs, background: false }
}

test('[ST80] a process that has lost its chat lock to another one can neither append nor rewind', async () => {
  await using folder = await temporaryDirectory()
  await using one = await openSqliteStore({ path: folder.file('s.db') })
  await using two = await openSqliteStore({ path: folder.file('s.db') })
  const session = await one.sessions.createSession(key)
  expect(await one.approvals.lockChat(CHAT, lock('first', 60_000))).toBe(true)
  await one.sessions.appendEvent({ session, event: textEvent('e-1') })
  // With a lease of 0 ms, every lock has expired.
  expect(await two.approvals.lockChat(CHAT, lock('second', 0))).toBe(true)
  const refused = expect.objectContaining({ name: 'StoreError', code: 'lock-lost' }) as unknown
  const late = one.sessions.appendEvent({ session, event: textEvent('late') })
  await expect(late).rejects.toEqual(refused)
  await expect(one.sessions.rewind({ ...key, eventId: 'e-1' })).rejects.toEqual(refused)
  // Appending the same event again changes it.
  const changed = one.sessions.appendEvent({ session, event: textEvent('e-1') })
  await expect(changed).rejects.toEqual(refused)
  const taker = await readSession(two.sessions)
  await two.sessions.appendEvent({ session: taker, event: textEvent('e-2') })
  await two.approvals.unlockChat(CHAT, 'second')
  // The chat is not locked now, and the process that lost it has no lock either.
  const later = one.sessions.appendEvent({ session, event: textEvent('later') })
  await expect(later).rejects.toEqual(refused)
  await one.approvals.unlockChat(CHAT, 'first')
  const again = await readSession(one.sessions)
  await one.sessions.appendEvent({ session: again, event: textEvent('e-3') })
  const ids = (await readSession(two.sessions)).events.map(({ id }) => id)
  expect(ids).toEqual(['e-1', 'e-2', 'e-3'])
})

/** A store with a locked chat, a running call, an unreported outcome and an expired browser call. */
async function leaveLeases(path: string): Promise<void> {
  await using store = await openSqliteStore({ path })
  const ledger = new Ledger({ store: store.approvals, appName: chat.appName, leaseMs: 60_000 })
  await ledger.locks.lock(chat)
  await ledger.heartbeat()
  for (const id of ['runs', 'denied']) {
    taken(await ledger.request(requestOf({ id, toolCallId: id })))
    taken(await ledger.decide(id, { by: hanako, approved: id === 'runs' }))
  }
  taken(await ledger.claim('runs', requestOf({ toolCallId: 'runs' })))
  await store.browserCalls.add({ chat, messageId: 'm-1', toolCallId: 'c-1' }, -1)
  const due = { appName: chat.appName, leaseMs: 60_000, limit: 10 }
  expect(await store.browserCalls.takeDue(due)).toHaveLength(1)
}

/** Returns what is not protected by a lease. */
async function readLeft(path: string): Promise<unknown> {
  await using store = await openSqliteStore({ path })
  const { approvals, browserCalls } = store
  const leaseMs = 60_000
  const filter = { appName: chat.appName, leaseMs, limit: 10 }
  return {
    holder: await approvals.findLockHolder(chat),
    stale: (await approvals.stale(leaseMs)).map(({ id }) => id),
    unreported: (await approvals.unreported(filter)).map(({ id }) => id),
    browserCalls: (await browserCalls.takeDue(filter)).length,
  }
}

const EVERYTHING = { holder: undefined, stale: ['runs'], unreported: ['denied'], browserCalls: 1 }
const NOTHING = {
  holder: expect.anything() as unknown,
  stale: [] as string[],
  unreported: [] as string[],
  browserCalls: 0,
}

test('[ST81] leases from before the last restart of the machine have expired', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('s.db')
  await leaveLeases(path)
  expect(await readLeft(path)).toEqual(NOTHING)
  const database = new Database(path)
  // The machine had been running for a thousand days longer than now.
  for (const [table, column] of LEASE_COLUMNS)
    database.exec(`UPDATE ${table} SET ${column} = ${column} + 86400000000`)
  database.close()
  expect(await readLeft(path)).toEqual(EVERYTHING)
})

const LEASE_COLUMNS = [
  ['workers', 'beat_at'],
  ['chat_locks', 'locked_at'],
  ['approvals', 'started_at'],
  ['approvals', 'unreported_since'],
  ['browser_calls', 'taken_at'],
] as const

/** Blocks the event loop until a lease has been renewed. */
function blockUntilRenewed(path: string, worker: string): void {
  const database = new Database(path)
  const select = database.prepare('SELECT beat_at FROM workers WHERE worker = ?')
  // Every row of this statement has this column.
  const read = () => (select.all(worker) as { beat_at: number }[])[0]?.beat_at ?? 0
  const before = read()
  const deadline = performance.now() + 30_000
  const never = new Int32Array(new SharedArrayBuffer(4))
  while (read() === before && performance.now() < deadline) Atomics.wait(never, 0, 0, 5)
  expect(read()).toBeGreaterThan(before)
  database.close()
}

function countThreads(): number {
  // Node.js describes the report in its documentation only.
  return (process.report.getReport() as { workers: unknown[] }).workers.length
}

test('[LG81] the stores of a process share one thread, and each keeps its lease when another is closed', async () => {
  await using folder = await temporaryDirectory()
  const open = async (name: string) => {
    const path = folder.file(name)
    const store = await openSqliteStore({ path })
    const options = { store: store.approvals, appName: chat.appName, leaseMs: 200 }
    const ledger = new Ledger({ ...options, maxBlockedMs: 60_000 })
    await ledger.locks.lock(chat)
    blockUntilRenewed(path, ledger.worker)
    return { store, renewed: () => blockUntilRenewed(path, ledger.worker) }
  }
  const one = await open('one.db')
  const threads = countThreads()
  const two = await open('two.db')
  expect(countThreads()).toBe(threads)
  await one.store.close()
  two.renewed()
  const three = await open('three.db')
  expect(countThreads()).toBe(threads)
  await Promise.all([two.store.close(), three.store.close()])
})
