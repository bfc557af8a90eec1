import { createEvent } from '@google/adk'
import { describe, expect, test } from 'vitest'
import { deltaEvent, idsOf, key, readSession, textEvent } from './store-fixture.ts'
import { sessionServices } from './store-subjects.ts'

describe.each(Object.entries(sessionServices))('%s', (_name, open) => {
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

  test('[ST24] names that look special are ordinary names', async () => {
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

  test('[ST25] events that are read are ADK events', async () => {
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
})
