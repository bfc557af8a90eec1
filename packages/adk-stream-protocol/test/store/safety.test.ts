import type { Event } from '@google/adk'
import { expect, test } from 'vitest'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import {
  deltaEvent,
  idsOf,
  key,
  readSession,
  textEvent,
} from '../../src/store/contract/fixtures.ts'
import { refusal } from './support/subjects.ts'

const invalid = refusal('invalid')

test('[ST13] an append to a deleted session is rejected and changes nothing', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const { sessions } = store
  const session = await sessions.createSession(key)
  await sessions.deleteSession(key)
  const event = deltaEvent('a', { k: 1, 'app:k': 1, 'user:k': 1 })
  await expect(sessions.appendEvent({ session, event })).rejects.toEqual(refusal('session-gone'))
  expect(session.events).toEqual([])
  expect(session.state).toEqual({})
  expect((await sessions.createSession(key)).state).toEqual({})
})

const cycle: Record<string, unknown> = {}
cycle['self'] = cycle

test.each([
  ['a bigint', { k: 1n }],
  ['a cycle', cycle],
])('[ST22] %s is rejected and changes nothing', async (_name, stateDelta) => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const { sessions } = store
  const session = await sessions.createSession({ ...key, state: { k: 0 } })
  const refused = sessions.appendEvent({ session, event: deltaEvent('a', stateDelta) })
  await expect(refused).rejects.toEqual(invalid)
  expect(session.state).toEqual({ k: 0 })
  await sessions.appendEvent({ session, event: textEvent('b') })
  const read = await readSession(sessions)
  expect(idsOf(read)).toEqual(['b'])
  expect(read.state).toEqual({ k: 0 })
  const state = { ...stateDelta }
  const created = sessions.createSession({ ...key, sessionId: 'other', state })
  await expect(created).rejects.toEqual(invalid)
})

test.each([600, 3_000, 100_000])('[ST22] a value of %i levels is rejected', async (depth) => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const session = await store.sessions.createSession(key)
  const append = store.sessions.appendEvent({ session, event: nestedEvent(depth) })
  await expect(append).rejects.toEqual(invalid)
  expect((await readSession(store.sessions)).events).toEqual([])
})

test('[ST22] a value of the maximum depth can be read', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const session = await store.sessions.createSession(key)
  await store.sessions.appendEvent({ session, event: nestedEvent(490) })
  expect(idsOf(await readSession(store.sessions))).toEqual(['nested'])
})

test('[ST22] a timestamp that is not a number is rejected', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const session = await store.sessions.createSession(key)
  const event = textEvent('a', { timestamp: Number.POSITIVE_INFINITY })
  await expect(store.sessions.appendEvent({ session, event })).rejects.toEqual(invalid)
})

test.each([
  ['NUL', 'a\0b'],
  ['a lone surrogate', 'a\ud800'],
  // libsql aborts the process if it is given a boolean.
  ['no string', true as unknown as string],
])('[ST22] a name with %s is rejected everywhere', async (_name, bad) => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const { sessions } = store
  const session = await sessions.createSession(key)
  const event = textEvent('a')
  const uses = [
    () => sessions.createSession({ ...key, sessionId: bad }),
    () => sessions.getSession({ ...key, sessionId: bad }),
    () => sessions.getOrCreateSession({ ...key, userId: bad }),
    () => sessions.listSessions({ appName: bad }),
    () => sessions.listSessions({ appName: 'demo', userId: bad }),
    () => sessions.deleteSession({ ...key, appName: bad }),
    () => sessions.appendEvent({ session: { ...session, id: bad }, event }),
    () => sessions.appendEvent({ session, event: { ...event, id: bad } }),
    () => sessions.rewind({ ...key, eventId: bad }),
    () => store.secret(bad),
  ]
  for (const use of uses) await expect(use()).rejects.toEqual(invalid)
  expect((await readSession(sessions)).events).toEqual([])
})

test.each([
  { limit: -1 },
  { limit: 1.5 },
  { limit: 1, page: 0 },
  { offset: -1 },
  { offset: Number.NaN },
])('[ST11] a list request with %j is rejected', async (request) => {
  await using store = await openSqliteStore({ path: ':memory:' })
  await expect(store.sessions.listSessions({ ...key, ...request })).rejects.toEqual(invalid)
})

test('[ST17] stored events are frozen, and may be appended again', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const { sessions } = store
  const session = await sessions.createSession(key)
  const args = { amount: 5 }
  const call = { role: 'model', parts: [{ functionCall: { id: 'c', name: 'pay', args } }] }
  await sessions.appendEvent({ session, event: deltaEvent('text', { k: [1] }) })
  await sessions.appendEvent({ session, event: textEvent('call', { content: call }) })
  const read = await readSession(sessions)
  const [text] = read.events
  expect(() => Object.assign(text ?? {}, { author: 'forged' })).toThrow(TypeError)
  expect(() => Object.assign(text?.content?.parts?.[0] ?? {}, { text: 'forged' })).toThrow(
    TypeError,
  )
  const fork = { ...key, sessionId: 'fork' }
  const forked = await sessions.createSession(fork)
  for (const event of read.events) await sessions.appendEvent({ session: forked, event })
  const copied = await readSession(sessions, fork)
  expect(copied.events).toEqual(read.events)
  expect(copied.state).toEqual({ k: [1] })
})

function nestedEvent(depth: number): Event {
  let nested: unknown = new Uint8Array([1])
  for (let level = 0; level < depth; level += 1) nested = { nested }
  const parts = [{ functionCall: { id: 'c', name: 'f', args: { nested } } }]
  return textEvent('nested', { content: { role: 'model', parts } })
}
