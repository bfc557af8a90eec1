import { createEvent, InMemorySessionService } from '@google/adk'
import { expect, test } from 'vitest'
import { canAppendResponse } from '../../src/agent/history/cut-events.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { isRewindable } from '../../src/store/store.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import {
  deltaEvent,
  idsOf,
  key,
  readSession,
  textEvent,
} from '../../src/store/contract/fixtures.ts'
import { refusal } from './support/subjects.ts'

test('[ST19] rewind removes the event and all later ones, and their state', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const { sessions } = store
  const session = await sessions.createSession({ ...key, state: { tone: 'polite', count: 0 } })
  const deltas = [
    { count: 1 },
    { tone: undefined, count: 2 },
    { count: 3, 'user:u': 3, 'app:a': 3 },
  ]
  for (const [index, delta] of deltas.entries()) {
    const event = deltaEvent(`e${index + 1}`, delta)
    event.timestamp = (index + 1) * 10
    await sessions.appendEvent({ session, event })
  }
  await readSession(sessions)
  await sessions.rewind({ ...key, eventId: 'e3' })
  const shared = { 'user:u': 3, 'app:a': 3 }
  const second = await readSession(sessions)
  expect(idsOf(second)).toEqual(['e1', 'e2'])
  expect(second.state).toEqual({ count: 2, ...shared })
  expect(second.lastUpdateTime).toBe(20)
  await sessions.rewind({ ...key, eventId: 'e2' })
  expect((await readSession(sessions)).state).toEqual({ tone: 'polite', count: 1, ...shared })
  await sessions.rewind({ ...key, eventId: 'e1' })
  const first = await readSession(sessions)
  expect(first.events).toEqual([])
  expect(first.state).toEqual({ tone: 'polite', count: 0, ...shared })
})

test('[ST19] rewind keeps the named events and their state', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const { sessions } = store
  const session = await sessions.createSession({ ...key, state: {} })
  for (const [id, delta] of Object.entries({ e1: { a: 1 }, e2: { b: 2 }, e3: { c: 3 }, e4: {} }))
    await sessions.appendEvent({ session, event: deltaEvent(id, delta) })
  await readSession(sessions)
  await sessions.rewind({ ...key, eventId: 'e2', keep: ['e3', 'unknown'] })
  const rewound = await readSession(sessions)
  expect(idsOf(rewound)).toEqual(['e1', 'e3'])
  expect(rewound.state).toEqual({ a: 1, c: 3 })
  await sessions.appendEvent({ session: rewound, event: deltaEvent('e5', {}) })
  expect(idsOf(await readSession(sessions))).toEqual(['e1', 'e3', 'e5'])
})

test('[ST19] a conversation continues after a rewind', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const { sessions } = store
  const session = await sessions.createSession(key)
  for (const id of ['a', 'b', 'c']) await sessions.appendEvent({ session, event: textEvent(id) })
  await sessions.rewind({ ...key, eventId: 'b' })
  const edited = await readSession(sessions)
  await sessions.appendEvent({ session: edited, event: textEvent('b', { author: 'editor' }) })
  await sessions.appendEvent({ session: edited, event: textEvent('d') })
  const read = await readSession(sessions)
  expect(idsOf(read)).toEqual(['a', 'b', 'd'])
  expect(read.events[1]?.author).toBe('editor')
})

test('[ST19] rewind to an unknown event is a conflict, and of an unknown session is session-gone', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const { sessions } = store
  const session = await sessions.createSession(key)
  await sessions.appendEvent({ session, event: textEvent('a') })
  await expect(sessions.rewind({ ...key, eventId: 'x' })).rejects.toEqual(refusal('conflict'))
  await expect(sessions.rewind({ ...key, userId: 'x', eventId: 'a' })).rejects.toEqual(
    refusal('session-gone'),
  )
  expect(idsOf(await readSession(sessions))).toEqual(['a'])
})

test('[ST21] isRewindable distinguishes our service from others', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  expect(isRewindable(store.sessions)).toBe(true)
  expect(isRewindable(new InMemorySessionService())).toBe(false)
})

test('[ST80] the response to a call is not stored if another process has removed the call', async () => {
  await using folder = await temporaryDirectory()
  await using one = await openSqliteStore({ path: folder.file('s.db') })
  await using two = await openSqliteStore({ path: folder.file('s.db') })
  if (!canAppendResponse(one.sessions)) throw new Error('The store cannot do both at once.')
  const session = await one.sessions.createSession(key)
  const call = { functionCall: { id: 'call-1', name: 'pay', args: {} } }
  const answer = { functionResponse: { id: 'call-1', name: 'pay', response: {} } }
  const eventOf = (id: string, part: typeof call | typeof answer) =>
    createEvent({ id, author: 'assistant', content: { role: 'model', parts: [part] } })
  const append = (id: string) => {
    if (!canAppendResponse(one.sessions)) return undefined
    return one.sessions.appendResponse({ session, event: eventOf(id, answer) }, ['call-1'])
  }
  await one.sessions.appendEvent({ session, event: eventOf('made', call) })
  expect(await append('answered')).toBe(true)
  await two.sessions.rewind({ ...key, eventId: 'made' })
  // Sent together: whichever is first, the call and its response are kept or removed together.
  await two.sessions.appendEvent({
    session: await readSession(two.sessions),
    event: eventOf('again', call),
  })
  const removed = two.sessions.rewind({ ...key, eventId: 'again' })
  await Promise.all([removed, append('late')])
  expect(idsOf(await readSession(two.sessions))).toEqual([])
  expect(await append('later')).toBe(false)
  expect(idsOf(await readSession(two.sessions))).toEqual([])
})
