import { createEvent, State } from '@google/adk'

import type { ContractTest, SessionSubject } from './contract-test.ts'
import { expect } from './contract-test.ts'
import { deltaEvent, idsOf, key, readSession, textEvent } from './fixtures.ts'

/** Tests what ADK's own session service in memory does as well. */
export function sessionContract(test: ContractTest, open: () => Promise<SessionSubject>): void {
  test('[ST1] creates a session with the given id and state, or a new id', async () => {
    await using subject = await open()
    const { service } = subject
    const created = await service.createSession({ ...key, state: { tone: '丁寧', 'temp:x': 1 } })
    expect(created).toMatchObject({ id: 'chat-1', appName: 'demo', userId: 'hanako', events: [] })
    expect(created.state).toEqual({ tone: '丁寧' })
    expect(await service.getSession(key)).toEqual(created)
    const other = await service.createSession({ appName: 'demo', userId: 'hanako' })
    expect(other.id).toMatch(/^[0-9a-f-]{36}$/u)
    expect(await service.getSession({ ...key, sessionId: other.id })).toEqual(other)
  })

  test('[ST1] finds nothing under an unknown app, user or session', async () => {
    await using subject = await open()
    await subject.service.createSession(key)
    for (const wrong of [{ appName: 'x' }, { userId: 'x' }, { sessionId: 'x' }]) {
      expect(await subject.service.getSession({ ...key, ...wrong })).toBeUndefined()
    }
  })

  test('[ST2] keeps session, user and app state in their scopes', async () => {
    await using subject = await open()
    const { service } = subject
    const session = await service.createSession({ ...key, state: { count: 1 } })
    const sibling = { ...key, sessionId: 'chat-2' }
    const stranger = { ...key, userId: 'taro', sessionId: 'chat-3' }
    await service.createSession(sibling)
    await service.createSession(stranger)
    const delta = { count: 2, 'user:name': '花子', 'app:version': 7, 'temp:draft': 'x' }
    await service.appendEvent({ session, event: deltaEvent('a', delta) })
    const shared = { 'user:name': '花子', 'app:version': 7 }
    expect(session.state).toEqual({ count: 2, ...shared })
    expect((await readSession(service)).state).toEqual({ count: 2, ...shared })
    expect((await readSession(service, sibling)).state).toEqual(shared)
    expect((await readSession(service, stranger)).state).toEqual({ 'app:version': 7 })
    const late = await service.createSession({ ...key, sessionId: 'chat-4' })
    expect(late.state).toEqual(shared)
  })

  test('[ST2] shows scoped keys of the initial state in that session only', async () => {
    await using subject = await open()
    const { service } = subject
    await service.createSession({ ...key, state: { 'app:a': 1, 'user:b': 2 } })
    const sibling = await service.createSession({ ...key, sessionId: 'chat-2' })
    expect((await readSession(service)).state).toEqual({ 'app:a': 1, 'user:b': 2 })
    expect(sibling.state).toEqual({})
  })

  test('[ST3] a late event does not roll back a newer write of the same run', async () => {
    await using subject = await open()
    const { service } = subject
    const session = await service.createSession(key)
    const older: Record<string, unknown> = {}
    const newer: Record<string, unknown> = {}
    new State(session.state, older).set('step', 'older')
    new State(session.state, newer).set('step', 'newer')
    await service.appendEvent({ session, event: deltaEvent('second', newer) })
    await service.appendEvent({ session, event: deltaEvent('first', older) })
    expect(session.state['step']).toBe('newer')
    expect((await readSession(service)).state['step']).toBe('newer')
  })

  test('[ST4] stores neither partial events nor temp: state', async () => {
    await using subject = await open()
    const { service } = subject
    const session = await service.createSession(key)
    await service.appendEvent({ session, event: textEvent('part', { partial: true }) })
    await service.appendEvent({ session, event: deltaEvent('whole', { 'temp:a': 1, b: 2 }) })
    const read = await readSession(service)
    expect(idsOf(read)).toEqual(['whole'])
    expect(read.events[0]?.actions.stateDelta).toEqual({ b: 2 })
    expect(idsOf(session)).toEqual(['whole'])
  })

  test('[ST5] an event with a known id replaces the stored one in its place', async () => {
    await using subject = await open()
    const { service } = subject
    const session = await service.createSession(key)
    for (const id of ['a', 'b', 'c']) await service.appendEvent({ session, event: textEvent(id) })
    await readSession(service)
    await service.appendEvent({ session, event: textEvent('b', { author: 'editor' }) })
    for (const read of [session, await readSession(service)]) {
      expect(idsOf(read)).toEqual(['a', 'b', 'c'])
      expect(read.events[1]?.author).toBe('editor')
    }
  })

  test('[ST6] the last update is the time of the last appended event', async () => {
    await using subject = await open()
    const { service } = subject
    const session = await service.createSession(key)
    await service.appendEvent({ session, event: textEvent('a', { timestamp: 1_794_701_518_275 }) })
    await service.appendEvent({ session, event: textEvent('b', { timestamp: 12.5 }) })
    expect(session.lastUpdateTime).toBe(12.5)
    expect((await readSession(service)).lastUpdateTime).toBe(12.5)
  })

  for (const [config, expected] of [
    [{}, ['a', 'b', 'c', 'd']],
    [{ numRecentEvents: 2 }, ['c', 'd']],
    [{ numRecentEvents: 9 }, ['a', 'b', 'c', 'd']],
    [{ numRecentEvents: 0 }, ['a', 'b', 'c', 'd']],
    [{ afterTimestamp: 20 }, ['b', 'c', 'd']],
    [{ afterTimestamp: 21 }, ['d']],
    [{ afterTimestamp: 99 }, []],
    [{ numRecentEvents: 3, afterTimestamp: 5 }, ['b', 'c', 'd']],
  ] as const) {
    test(`[ST7] getSession with ${JSON.stringify(config)} gives ${JSON.stringify(expected)}`, async () => {
      await using subject = await open()
      const { service } = subject
      const session = await service.createSession(key)
      const times = { a: 10, b: 20, c: 20, d: 30 }
      for (const [id, timestamp] of Object.entries(times)) {
        await service.appendEvent({ session, event: textEvent(id, { timestamp }) })
      }
      const read = await service.getSession({ ...key, config })
      expect(read?.events.map((event) => event.id)).toEqual(expected)
    })
  }

  test('[ST5] returns events in append order, whatever their timestamps', async () => {
    await using subject = await open()
    const { service } = subject
    const session = await service.createSession(key)
    const ids = Array.from({ length: 250 }, (_, index) => `event-${index}`)
    const events = ids.map((id, index) => textEvent(id, { timestamp: index === 9 ? 5 : 1_000 }))
    await Promise.all(events.map((event) => service.appendEvent({ session, event })))
    expect(idsOf(await readSession(service))).toEqual(ids)
  })

  test('[ST9] getOrCreateSession returns an existing session or creates one', async () => {
    await using subject = await open()
    const { service } = subject
    const created = await service.getOrCreateSession({ ...key, state: { a: 1 } })
    const found = await service.getOrCreateSession({ ...key, state: { a: 2 } })
    expect(found).toEqual(created)
    const unnamed = await service.getOrCreateSession({ appName: 'demo', userId: 'hanako' })
    expect(unnamed.id).not.toBe(key.sessionId)
  })

  for (const [request, length, totals] of [
    [{}, 5, { page: 1, limit: 5, totalItems: 5, totalPages: 1 }],
    [{ offset: 3 }, 2, { page: 1, limit: 5, totalItems: 5, totalPages: 1 }],
    [{ limit: 2 }, 2, { page: 1, limit: 2, totalItems: 5, totalPages: 3 }],
    [{ limit: 2, offset: 3 }, 2, { page: 2, limit: 2, totalItems: 5, totalPages: 3 }],
    [{ limit: 2, page: 3 }, 1, { page: 3, limit: 2, totalItems: 5, totalPages: 3 }],
    [{ limit: 2, page: 2, offset: 4 }, 2, { page: 2, limit: 2, totalItems: 5, totalPages: 3 }],
    [{ limit: 0 }, 0, { page: 1, limit: 0, totalItems: 5, totalPages: 0 }],
    [{ limit: 9, page: 4 }, 0, { page: 4, limit: 9, totalItems: 5, totalPages: 1 }],
    [{ userId: 'taro' }, 1, { page: 1, limit: 1, totalItems: 1, totalPages: 1 }],
    [{ userId: 'nobody' }, 0, { page: 1, limit: 0, totalItems: 0, totalPages: 0 }],
    [
      { userId: 'nobody', limit: 3, offset: 3 },
      0,
      { page: 2, limit: 3, totalItems: 0, totalPages: 0 },
    ],
  ] as const) {
    test(`[ST11] lists ${JSON.stringify(request)}: ${length} sessions and right totals`, async () => {
      await using subject = await open()
      const { service } = subject
      await service.createSession({ appName: 'other', userId: 'hanako', sessionId: 'elsewhere' })
      await service.createSession({ appName: 'demo', userId: 'taro', sessionId: 's0' })
      for (const sessionId of ['s1', 's2', 's3', 's4']) {
        await service.createSession({ ...key, sessionId })
      }
      const { sessions, ...rest } = await service.listSessions({ appName: 'demo', ...request })
      expect(sessions).toHaveLength(length)
      expect(rest).toEqual(totals)
    })
  }

  test('[ST11] lists by last update in both directions, ties by id, without events and state', async () => {
    await using subject = await open()
    const { service } = subject
    for (const [sessionId, timestamp] of Object.entries({ a: 30, b: 10, d: 20, c: 20 })) {
      const session = await service.createSession({ ...key, sessionId, state: { secret: 1 } })
      await service.appendEvent({ session, event: textEvent('e', { timestamp }) })
    }
    const list = async (order: 'asc' | 'desc') =>
      (await service.listSessions({ ...key, order })).sessions
    expect((await list('asc')).map(({ id }) => id)).toEqual(['b', 'c', 'd', 'a'])
    expect((await list('desc')).map(({ id }) => id)).toEqual(['a', 'c', 'd', 'b'])
    const [first] = (await service.listSessions({ ...key, order: 'asc', limit: 1, page: 2 }))
      .sessions
    expect(first).toEqual({
      ...key,
      id: 'c',
      sessionId: undefined,
      state: {},
      events: [],
      lastUpdateTime: 20,
    })
  })

  test('[ST12] a deleted session is gone, and a new one with its id starts empty', async () => {
    await using subject = await open()
    const { service } = subject
    const session = await service.createSession({ ...key, state: { a: 1 } })
    await service.appendEvent({ session, event: deltaEvent('e', { b: 2, 'user:c': 3 }) })
    await readSession(service)
    await service.deleteSession(key)
    await service.deleteSession(key)
    expect(await service.getSession(key)).toBeUndefined()
    expect((await service.listSessions(key)).totalItems).toBe(0)
    const again = await service.createSession(key)
    expect(again.events).toEqual([])
    expect(again.state).toEqual({ 'user:c': 3 })
    expect(idsOf(await readSession(service))).toEqual([])
  })

  test('[ST17] changes of one reader do not affect the next reader', async () => {
    await using subject = await open()
    const { service } = subject
    const session = await service.createSession({ ...key, state: { list: [1] } })
    const args = { amount: 5, to: { name: '花子' } }
    const content = { role: 'model', parts: [{ functionCall: { id: 'call', name: 'pay', args } }] }
    await service.appendEvent({ session, event: textEvent('a', { content }) })
    const first = await readSession(service)
    const before = structuredClone({ state: first.state, events: first.events })
    const given = first.events[0]?.content?.parts?.[0]?.functionCall?.args
    Object.assign(given ?? {}, { amount: 500, to: 'someone else' })
    first.events.length = 0
    first.events.push(textEvent('forged'))
    first.state['list'] = 'forged'
    const second = await readSession(service)
    expect(structuredClone({ state: second.state, events: second.events })).toEqual(before)
  })

  test('[ST22] text and keys of every kind survive', async () => {
    await using subject = await open()
    const { service } = subject
    const odd: unknown = JSON.parse('{"__proto__":{"polluted":true},"constructor":1,"":2}')
    const text = `NUL \0, half \ud800 pair, 花子 👩‍👩‍👧, "quotes", \u2028`
    const session = await service.createSession({ ...key, state: { odd, text } })
    const event = deltaEvent('a', JSON.parse('{"__proto__":{"polluted":1},"k":"v"}'))
    event.content = { parts: [{ text }, { functionResponse: { name: 'f', response: { odd } } }] }
    await service.appendEvent({ session, event })
    const read = await readSession(service)
    expect(read.events[0]?.content).toEqual({
      parts: [{ text }, { functionResponse: { name: 'f', response: { odd } } }],
    })
    expect(read.state['text']).toBe(text)
    expect(Object.getOwnPropertyDescriptor(read.state, '__proto__')?.value).toEqual({ polluted: 1 })
    expect(Object.getOwnPropertyNames(read.state['odd'])).toEqual(['__proto__', 'constructor', ''])
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })

  test('[ST22] bytes survive as bytes, in events and in state', async () => {
    await using subject = await open()
    const { service } = subject
    const session = await service.createSession(key)
    const response = {
      bytes: new Uint8Array([0, 1, 255]),
      lookalikes: [{ $bytes: 'AAH/' }, { $$bytes: 'AAH/' }, { $bytes: 'AAH/', more: 1 }],
      nested: { $bytes: { $bytes: new Uint8Array([7]) } },
    }
    const event = deltaEvent('a', { raw: new Uint8Array([9]) })
    event.content = { parts: [{ functionResponse: { name: 'f', response } }] }
    await service.appendEvent({ session, event })
    const read = await readSession(service)
    expect(read.events[0]?.content?.parts?.[0]?.functionResponse?.response).toEqual(response)
    expect(read.state['raw']).toEqual(new Uint8Array([9]))
  })

  test('[ST22] a value of undefined removes a key', async () => {
    await using subject = await open()
    const { service } = subject
    const session = await service.createSession({ ...key, state: { a: 1, b: 2 } })
    await service.appendEvent({ session, event: deltaEvent('e', { a: undefined }) })
    expect((await readSession(service)).state).toEqual({ b: 2 })
  })

  test('[ST22] a value of several megabytes survives', async () => {
    await using subject = await open()
    const { service } = subject
    const session = await service.createSession(key)
    const data = Buffer.alloc(6_000_000, '花子').toString('base64')
    const content = { parts: [{ inlineData: { mimeType: 'image/png', data } }] }
    await service.appendEvent({ session, event: textEvent('a', { content }) })
    expect((await readSession(service)).events[0]?.content?.parts?.[0]?.inlineData?.data).toBe(data)
  })

  test('[ST22] names that look special are ordinary names', async () => {
    await using subject = await open()
    const { service } = subject
    const names = [
      '__proto__',
      'constructor',
      "'; DROP TABLE sessions; --",
      '花子 👩‍👩‍👧',
      '%',
      'A',
      'a',
      ' a',
    ]
    for (const sessionId of names) {
      const session = await service.createSession({ ...key, sessionId })
      await service.appendEvent({ session, event: textEvent(sessionId) })
    }
    for (const sessionId of names) {
      expect(idsOf(await readSession(service, { ...key, sessionId }))).toEqual([sessionId])
    }
  })

  test('[ST17] events that are read are ADK events', async () => {
    await using subject = await open()
    const { service } = subject
    const session = await service.createSession(key)
    const event = createEvent({
      author: 'user',
      longRunningToolIds: ['x'],
      customMetadata: { a_b: 1 },
    })
    await service.appendEvent({ session, event })
    const [read] = (await readSession(service)).events
    // ADK's own `isEvent`, which it does not export, checks this mark.
    expect(Reflect.get(read ?? {}, Symbol.for('google.adk.event'))).toBe(true)
    expect(read).toEqual(event)
  })
}
