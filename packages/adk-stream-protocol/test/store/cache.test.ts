import { expect, test } from 'vitest'
import type { SessionHistory } from '../../src/store/session-history.ts'
import { SessionCache } from '../../src/store/session-history.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import {
  deltaEvent,
  idsOf,
  key,
  readSession,
  textEvent,
} from '../../src/store/contract/fixtures.ts'

test('[ST16] a store immediately reads what another store on the same file writes', async () => {
  await using folder = await temporaryDirectory()
  await using writer = await openSqliteStore({ path: folder.file('s.db') })
  await using reader = await openSqliteStore({ path: folder.file('s.db') })
  const session = await writer.sessions.createSession(key)
  const seen = async () => idsOf(await readSession(reader.sessions))
  expect(await seen()).toEqual([])
  for (const id of ['a', 'b', 'c'])
    await writer.sessions.appendEvent({ session, event: textEvent(id) })
  expect(await seen()).toEqual(['a', 'b', 'c'])
  await writer.sessions.appendEvent({ session, event: deltaEvent('b', { k: 1, 'app:k': 2 }) })
  const replaced = await readSession(reader.sessions)
  expect(replaced.events[1]?.actions.stateDelta).toEqual({ k: 1, 'app:k': 2 })
  expect(replaced.state).toEqual({ k: 1, 'app:k': 2 })
  await writer.sessions.rewind({ ...key, eventId: 'b' })
  await writer.sessions.appendEvent({ session, event: textEvent('d') })
  await writer.sessions.appendEvent({ session, event: textEvent('e') })
  expect(await seen()).toEqual(['a', 'd', 'e'])
  await writer.sessions.deleteSession(key)
  expect(await reader.sessions.getSession(key)).toBeUndefined()
  const again = await writer.sessions.createSession(key)
  for (const id of ['x', 'y', 'z'])
    await writer.sessions.appendEvent({ session: again, event: textEvent(id) })
  expect(await seen()).toEqual(['x', 'y', 'z'])
})

test('[ST16] two stores that append in turn both see every event', async () => {
  await using folder = await temporaryDirectory()
  await using one = await openSqliteStore({ path: folder.file('s.db') })
  await using two = await openSqliteStore({ path: folder.file('s.db') })
  await one.sessions.createSession(key)
  const ids: string[] = []
  for (let turn = 0; turn < 20; turn += 1) {
    const { sessions } = turn % 2 ? one : two
    const session = await readSession(sessions)
    expect(idsOf(session)).toEqual(ids)
    const id = `turn-${turn}`
    await sessions.appendEvent({ session, event: deltaEvent(id, { [`k${turn}`]: turn }) })
    ids.push(id)
  }
  const state = Object.fromEntries(ids.map((_, turn) => [`k${turn}`, turn]))
  expect((await readSession(one.sessions)).state).toEqual(state)
})

test('[ST18] a second read only parses events that were appended since', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const { sessions } = store
  const session = await sessions.createSession(key)
  await sessions.appendEvent({ session, event: textEvent('a') })
  const first = await readSession(sessions)
  await sessions.appendEvent({ session, event: textEvent('b') })
  const second = await readSession(sessions)
  expect(second.events).not.toBe(first.events)
  expect(second.events[0]).toBe(first.events[0])
  expect(idsOf(second)).toEqual(['a', 'b'])
})

test('[ST18] the cache keeps the most recently used sessions within its limits', () => {
  const cache = new SessionCache({ sessions: 2, characters: 100 })
  cache.keep(1, history(10))
  cache.keep(2, history(10))
  cache.keep(1, history(20))
  cache.keep(3, history(10))
  expect(kept(cache)).toEqual([1, 3])
  cache.keep(4, history(85))
  expect(kept(cache)).toEqual([3, 4])
  cache.keep(5, history(101))
  expect(kept(cache)).toEqual([3, 4])
  cache.keep(4, history(101))
  expect(kept(cache)).toEqual([3])
  cache.drop(3)
  cache.keep(6, history(100))
  expect(kept(cache)).toEqual([6])
  cache.clear()
  expect(kept(cache)).toEqual([])
})

test('[ST18] the size of a history is updated when it grows', () => {
  const cache = new SessionCache({ sessions: 9, characters: 100 })
  const growing = history(10)
  cache.keep(1, growing)
  cache.keep(2, history(10))
  growing.size = 95
  cache.keep(1, growing)
  expect(kept(cache)).toEqual([1])
  cache.keep(2, history(5))
  expect(kept(cache)).toEqual([1, 2])
})

function history(size: number): SessionHistory {
  return { epoch: 0, seq: 0, size, events: [], calls: [] }
}

function kept(cache: SessionCache): number[] {
  return [1, 2, 3, 4, 5, 6].filter((session) => cache.get(session) !== undefined)
}
