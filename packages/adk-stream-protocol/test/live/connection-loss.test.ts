import { startEmulator, type Emulator, type LiveSession } from 'gemini-emulator'
import { expect, test } from 'vitest'

import { LiveConnectionError } from '../../src/modules/live/gemini/gemini-socket.ts'
import { tool } from '../support/agents.ts'
import {
  allClosed,
  FLASH_LIVE,
  isTurnComplete,
  memoryOf,
  NATIVE_AUDIO,
  openSockets,
  runReconnecting,
  textOf,
} from './support/reconnecting-run.ts'

/** Waits until the newest handle covers the whole conversation. */
async function atRest(session: LiveSession): Promise<void> {
  await session.waitForSent(() => 'sessionResumptionUpdate' in (session.sent.at(-1) ?? {}))
}

test.each([1000, 1001, 1006, 1011, 1012, 1013])(
  '[LC3] a connection that ends with %i is replaced, and the conversation continues',
  async (code) => {
    await using emulator = await startEmulator()
    await using run = await runReconnecting(emulator)
    run.say('[[say My name is Hanako.]]')
    await run.until(isTurnComplete)
    const first = await emulator.live.nextSession()
    await atRest(first)
    first.close(code, 'for some reason')
    const second = await emulator.live.nextSession()
    run.say('[[say And again.]]')
    expect(textOf(await run.until(isTurnComplete))).toBe('And again.')
    expect(memoryOf(second)[1]).toBe('model: My name is Hanako.')
    expect(run.reported.statuses).toEqual(['connecting', 'open', 'reconnecting', 'open'])
    expect(run.reported.errors).toMatchObject([{ code, phase: 'open', retryable: true }])
    expect(run.reported.interruptions).toBe(0)
  },
)

test('[LC3] a conversation survives ten lost connections', async () => {
  await using emulator = await startEmulator()
  await using run = await runReconnecting(emulator, { maxAttempts: 2 })
  for (let turn = 0; turn < 11; turn += 1) {
    const session = await emulator.live.nextSession()
    run.say(`[[say Turn ${turn}.]]`)
    expect(textOf(await run.until(isTurnComplete))).toBe(`Turn ${turn}.`)
    await atRest(session)
    session.drop()
  }
  expect(memoryOf(emulator.live.sessions[10] ?? { history: [] })).toHaveLength(22)
})

test('[LC4] the number of failed attempts is limited', async () => {
  const emulator = await startEmulator()
  await using run = await runReconnecting(emulator, { maxAttempts: 3 })
  await emulator.live.nextSession()
  await emulator.close()
  expect(await run.ended).toBeInstanceOf(LiveConnectionError)
  expect(await run.ended).toMatchObject({ code: 1006, phase: 'setup' })
  // The loss, and three attempts.
  expect(run.reported.errors).toHaveLength(4)
  expect(run.reported.statuses).toEqual(['connecting', 'open', 'reconnecting', 'closed'])
})

test.each([1007, 1008, 4001])(
  '[LC1] a connection that closes with %i ends the run',
  async (code) => {
    await using emulator = await startEmulator()
    await using run = await runReconnecting(emulator)
    const session = await emulator.live.nextSession()
    session.close(code, 'not like this')
    expect(await run.ended).toMatchObject({
      name: 'LiveConnectionError',
      code,
      reason: 'not like this',
      phase: 'open',
      retryable: false,
    })
    await allClosed(emulator)
    expect(emulator.live.sessions).toHaveLength(1)
  },
)

test.each([NATIVE_AUDIO, FLASH_LIVE])(
  '[LC6] after a rejected handle, a new connection starts with the history (%s)',
  async (model) => {
    await using emulator = await startEmulator({ live: { handleLifetimeMs: 0 } })
    await using run = await runReconnecting(emulator, { model })
    run.say('[[say My name is Hanako.]]')
    await run.until(isTurnComplete)
    const first = await emulator.live.nextSession()
    await atRest(first)
    first.drop()
    run.say('[[say I know.]]')
    expect(textOf(await run.until(isTurnComplete))).toBe('I know.')
    const second = await emulator.live.nextSession()
    expect(memoryOf(second)).toEqual([
      'user: [[say My name is Hanako.]]',
      'model: My name is Hanako.',
      'user: [[say I know.]]',
      'model: I know.',
    ])
    const [, refused] = emulator.live.sessions
    expect(refused?.closed).toMatchObject({ code: 1008 })
    expect(refused?.setup?.sessionResumption?.handle).toBeTypeOf('string')
  },
)

test('[LC7] goAway between turns replaces the connection at once, ten times', async () => {
  await using emulator = await startEmulator()
  await using run = await runReconnecting(emulator)
  let session = await emulator.live.nextSession()
  for (let turn = 0; turn < 10; turn += 1) {
    run.say(`[[say Turn ${turn}.]]`)
    expect(textOf(await run.until(isTurnComplete))).toBe(`Turn ${turn}.`)
    await atRest(session)
    session.goAway(60_000)
    const next = await emulator.live.nextSession()
    expect(await session.ended).toMatchObject({ code: 1005 })
    session = next
  }
  expect(memoryOf(session)).toHaveLength(20)
  expect(run.reported.interruptions).toBe(0)
})

test('[LC7] goAway during a turn waits for the end of the turn', async () => {
  await using emulator = await startEmulator()
  await using run = await runReconnecting(emulator)
  run.say('[[say Once upon]] [[go-away 60000]] [[wait end]] [[say a time.]]')
  const first = await emulator.live.nextSession()
  await first.waitForSent((frame) => 'goAway' in frame)
  emulator.release('end')
  expect(textOf(await run.until(isTurnComplete))).toBe('Once upona time.')
  const second = await emulator.live.nextSession()
  run.say('[[say Good.]]')
  await run.until(isTurnComplete)
  expect(memoryOf(second).slice(1, 2)).toEqual(['model: Once upona time.'])
  expect(run.reported.interruptions).toBe(0)
})

test('[LC7] goAway during a turn waits no longer than the time that is left', async () => {
  await using emulator = await startEmulator()
  await using run = await runReconnecting(emulator)
  run.say('[[say Once upon]] [[go-away 400]] [[wait end]] [[say a time.]]')
  const events = await run.until(isTurnComplete)
  expect(events.some((event) => event.content?.parts?.[0]?.text === 'Once upon')).toBe(true)
  const [first] = emulator.live.sessions
  // The client closed the connection before Gemini did.
  expect(await first?.ended).toMatchObject({ code: 1005 })
  expect(run.reported.interruptions).toBe(1)
})

async function loseInMidSpeech(emulator: Emulator, model: string) {
  const run = await runReconnecting(emulator, { model })
  run.say('[[say Hello.]]')
  await run.until(isTurnComplete)
  const first = await emulator.live.nextSession()
  await atRest(first)
  run.say('[[say Half]] [[wait rest]] [[say and half.]]')
  await run.until(({ content }) => content?.parts?.[0]?.text === 'Half')
  first.drop()
  return run
}

test.each([NATIVE_AUDIO, FLASH_LIVE])(
  '[LC8] a reply that was cut off ends, and the model repeats it (%s)',
  async (model) => {
    await using emulator = await startEmulator()
    await using run = await loseInMidSpeech(emulator, model)
    expect(textOf(await run.until(isTurnComplete))).toBe('Half')
    expect(run.reported.interruptions).toBe(1)
    emulator.release('rest')
    expect(textOf(await run.until(isTurnComplete))).toBe('Halfand half.')
    const second = await emulator.live.nextSession()
    expect(memoryOf(second)).toHaveLength(4)
  },
)

test.each([NATIVE_AUDIO, FLASH_LIVE])(
  '[LC9] messages sent without a connection arrive in order and once (%s)',
  async (model) => {
    await using emulator = await startEmulator()
    await using run = await runReconnecting(emulator, { model })
    run.say('[[say Hello.]]')
    await run.until(isTurnComplete)
    const first = await emulator.live.nextSession()
    await atRest(first)
    // The first is sent into a lost connection, the second without a connection.
    first.drop()
    run.say('[[say One.]]')
    run.say('[[say Two.]]')
    await run.until((event) => textOf([event]) === 'Two.')
    const second = await emulator.live.nextSession()
    await atRest(second)
    const asked = memoryOf(second).filter((line) => line.startsWith('user'))
    expect(asked).toEqual(['user: [[say Hello.]]', 'user: [[say One.]]', 'user: [[say Two.]]'])
    // The connection after that does not receive it again.
    second.drop()
    const third = await emulator.live.nextSession()
    run.say('[[say Three.]]')
    await run.until((event) => textOf([event]) === 'Three.')
    expect(memoryOf(third).filter((line) => line.includes('say One'))).toHaveLength(1)
  },
)

test('[LC9] a message with a reply since the last handle becomes history and is not resent', async () => {
  await using emulator = await startEmulator()
  await using run = await runReconnecting(emulator)
  const first = await emulator.live.nextSession()
  run.say('[[say One.]] [[raw {"serverContent":{"turnComplete":true}}]] [[drop]]')
  await run.until(isTurnComplete)
  await first.ended
  const second = await emulator.live.nextSession()
  run.say('[[say Two.]]')
  expect(textOf(await run.until(isTurnComplete))).toBe('Two.')
  expect(memoryOf(second).map((line) => line.slice(0, 15))).toEqual([
    'user: [[say One',
    'model: One.',
    'user: [[say Two',
    'model: Two.',
  ])
})

test('[LC10] a message that closes the connection each time is dropped', async () => {
  await using emulator = await startEmulator()
  await using run = await runReconnecting(emulator)
  run.say('[[say Well]] [[drop]]')
  const lost = new Set<LiveSession>()
  while (lost.size < 3) {
    const session = await emulator.live.nextSession()
    await session.ended
    lost.add(session)
  }
  run.say('[[say Fine.]]')
  await run.until((event) => textOf([event]) === 'Fine.')
  expect(run.reported.errors.map(String).some((error) => error.includes('Dropped'))).toBe(true)
  expect(openSockets(emulator)).toBe(1)
})

test('[LC10] a model whose result is dropped replies again, and knows the result', async () => {
  await using emulator = await startEmulator()
  const look = tool('look', () => ({ seen: 'a fox' }))
  await using run = await runReconnecting(emulator, { model: FLASH_LIVE, tools: [look] })
  run.say('[[call look {}]] [[then]] [[drop]]')
  const lost = new Set<LiveSession>()
  while (lost.size < 3) {
    const session = await emulator.live.nextSession()
    await session.ended
    lost.add(session)
  }
  const next = await emulator.live.nextSession()
  run.say('[[say Fine.]]')
  await run.until((event) => textOf([event]) === 'Fine.')
  expect(memoryOf(next).join()).toContain('[look returned {"seen":"a fox"}]')
})
