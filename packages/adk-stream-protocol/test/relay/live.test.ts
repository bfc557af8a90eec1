import { afterAll, beforeAll, expect, test } from 'vitest'

import { speak } from '../live/support/voice.ts'
import { textOf } from '../support/chat-probe.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { openLivePair } from './support/live-pair.ts'
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
  expect((await pair.atTwo.messages()).map(textOf).filter((_, index) => index % 2 === 1)).toEqual([
    'One.',
    'Two.',
    'Three.',
  ])
  expect([...pair.one.errors, ...pair.two.errors]).toEqual([])
})

test('[LV324] a call that waits for approval moves with its live session, and runs once', async () => {
  await using pair = await openLivePair(database, 'asking-live')
  const first = await pair.join('one')
  await first.say(PAY)
  const [asked] = await pair.atOne.approvals()
  await first[Symbol.asyncDispose]()
  await using second = await pair.join('two')
  await second.status('open')
  expect(pair.emulator.live.sessions[1]?.pendingCalls).toHaveLength(1)
  // Decided at the server that asked, which does not have the session any more.
  expect(await pair.atOne.decide(asked?.id ?? '', { approved: true })).toMatchObject({ status: 200 })
  const { requestId } = await second.socket.nextOf('turn')
  expect(await second.whole(requestId)).toBe('All settled.')
  expect(pair.emulator.live.sessions[1]?.pendingCalls).toEqual([])
  expect(pair.emulator.requests).toEqual([])
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
