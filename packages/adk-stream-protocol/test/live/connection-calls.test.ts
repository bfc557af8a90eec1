import { FunctionTool, LongRunningFunctionTool } from '@google/adk'
import { startEmulator } from 'gemini-emulator'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { defer } from '../support/agents.ts'
import {
  FLASH_LIVE,
  isCall,
  isTurnComplete,
  memoryOf,
  NATIVE_AUDIO,
  runReconnecting,
  textOf,
} from './support/reconnecting-run.ts'

const OLD = 'gemini-2.0-flash-live-001'
const NEW = 'gemini-3.8-live'

/** Records its calls and leaves the result to the test. */
function gate(name: string, calls: unknown[]) {
  return new LongRunningFunctionTool({
    name,
    description: name,
    parameters: z.object({ amount: z.number() }),
    execute: (input) => {
      calls.push(input)
      return undefined
    },
  })
}

/** Records its calls and blocks ADK's loop until the test releases it. */
function blocker(name: string, calls: string[], hold: Promise<void>) {
  return new FunctionTool({
    name,
    description: name,
    execute: async () => {
      calls.push(name)
      await hold
      return { done: true }
    },
  })
}

test.each([
  [NATIVE_AUDIO, false],
  [NATIVE_AUDIO, true],
  [FLASH_LIVE, false],
  [OLD, false],
  [NEW, false],
])(
  '[LC11] %s delivers a call at once, whether or not its turn is complete (%s)',
  async (model, toolTurnComplete) => {
    await using emulator = await startEmulator({ live: { toolTurnComplete } })
    const calls: unknown[] = []
    await using run = await runReconnecting(emulator, { model, tools: [gate('pay', calls)] })
    run.say('[[say Paying.]] [[call pay {"amount": 5}]] [[then]] [[say Paid.]]')
    const [call] = (await run.until(isCall)).at(-1)?.content?.parts ?? []
    expect(call?.functionCall).toMatchObject({ name: 'pay', args: { amount: 5 } })
    run.answer(call?.functionCall?.id ?? '', 'pay', { ok: true })
    await run.until((event) => textOf([event]) === 'Paid.')
    expect(calls).toEqual([{ amount: 5 }])
  },
)

test.each([NATIVE_AUDIO, FLASH_LIVE])(
  '[LC12] an open call outlives its connection; the next one carries its result (%s)',
  async (model) => {
    await using emulator = await startEmulator()
    const calls: unknown[] = []
    await using run = await runReconnecting(emulator, { model, tools: [gate('pay', calls)] })
    run.say('[[call pay {"amount": 5}]] [[then]] [[say Paid.]]')
    const [call] = (await run.until(isCall)).at(-1)?.content?.parts ?? []
    const first = await emulator.live.nextSession()
    await first.waitForSent(() => 'sessionResumptionUpdate' in (first.sent.at(-1) ?? {}))
    first.drop()
    const second = await emulator.live.nextSession()
    run.answer(call?.functionCall?.id ?? '', 'pay', { ok: true })
    await run.until((event) => textOf([event]) === 'Paid.')
    expect(calls).toHaveLength(1)
    expect(second.ignoredResponses).toEqual([])
  },
)

test.each([NATIVE_AUDIO, FLASH_LIVE])(
  '[LC12] the next connection receives the result of an unknown call as text, and the call is not repeated (%s)',
  async (model) => {
    await using emulator = await startEmulator({ live: { handleLifetimeMs: 0 } })
    const calls: unknown[] = []
    await using run = await runReconnecting(emulator, { model, tools: [gate('pay', calls)] })
    run.say('[[call pay {"amount": 5}]]')
    const [call] = (await run.until(isCall)).at(-1)?.content?.parts ?? []
    const first = await emulator.live.nextSession()
    first.drop()
    const second = await emulator.live.nextSession()
    run.answer(call?.functionCall?.id ?? '', 'pay', { say: '[[say So it was.]]' })
    await run.until((event) => textOf([event]).includes('So it was.'))
    expect(calls).toHaveLength(1)
    expect(memoryOf(second).slice(0, 3)).toEqual([
      'user: [[call pay {"amount": 5}]]',
      'model: [called pay({"amount":5})]',
      'user: [pay returned {"say":"[[say So it was.]]"}]',
    ])
    expect(second.received.some((frame) => 'toolResponse' in frame)).toBe(false)
  },
)

test('[LC11] a call that is still queued when the connection ends does not run', async () => {
  await using emulator = await startEmulator()
  const calls: string[] = []
  const hold = defer()
  const tools = [blocker('first', calls, hold.promise), blocker('second', calls, hold.promise)]
  await using run = await runReconnecting(emulator, { tools })
  run.say('[[call-separate first {}]] [[call-separate second {}]]')
  await run.until(isCall)
  const session = await emulator.live.nextSession()
  session.close(1008, 'enough')
  while (run.reported.statuses.at(-1) !== 'closed') await new Promise(setImmediate)
  hold.resolve()
  expect(await run.ended).toMatchObject({ code: 1008 })
  expect(calls).toEqual(['first'])
})

test('[LC11] cancelled calls are reported at once, and those still queued do not run', async () => {
  await using emulator = await startEmulator()
  const calls: string[] = []
  const hold = defer()
  const tools = [blocker('first', calls, hold.promise), blocker('second', calls, hold.promise)]
  await using run = await runReconnecting(emulator, { tools })
  run.say('[[call-separate first {}]] [[call-separate second {}]] [[wait more]] [[cancel]]')
  await run.until(isCall)
  const session = await emulator.live.nextSession()
  const ids = session.pendingCalls.map(({ id }) => id)
  emulator.release('more')
  while (run.reported.cancelled.length < 2) await new Promise(setImmediate)
  expect(run.reported.cancelled).toEqual(ids)
  hold.resolve()
  run.say('[[say Well.]]')
  await run.until((event) => textOf([event]) === 'Well.')
  expect(calls).toEqual(['first'])
})

test.each(['nope', 'constructor', '__proto__', 'toString'])(
  '[LC15] a call of %s, which is not a tool, gets an error, and the run continues',
  async (name) => {
    await using emulator = await startEmulator()
    const calls: unknown[] = []
    await using run = await runReconnecting(emulator, { tools: [gate('pay', calls)] })
    run.say(`[[call ${name} {}]] [[then]] [[say I see.]]`)
    await run.until((event) => textOf([event]) === 'I see.')
    const session = await emulator.live.nextSession()
    const answer = await session.waitFor((frame) => 'toolResponse' in frame)
    expect(JSON.stringify(answer)).toContain(`There is no tool ${name}.`)
  },
)

test('[LC15] other tools of the same message run', async () => {
  await using emulator = await startEmulator()
  const calls: unknown[] = []
  await using run = await runReconnecting(emulator, { tools: [gate('pay', calls)] })
  run.say('[[call nope {}]] [[call pay {"amount": 1}]] [[then]] [[say Both.]]')
  const parts = (await run.until(isCall)).at(-1)?.content?.parts ?? []
  expect(parts.map((part) => part.functionCall?.name)).toEqual(['pay'])
  run.answer(parts[0]?.functionCall?.id ?? '', 'pay', { ok: true })
  await run.until((event) => textOf([event]) === 'Both.')
  expect(calls).toHaveLength(1)
})

test('[LC15] a result that the SDK rejects is reported, and the run continues', async () => {
  await using emulator = await startEmulator()
  await using run = await runReconnecting(emulator)
  run.queue.sendContent({ role: 'user', parts: [{ functionResponse: { name: 'x' } }] })
  run.say('[[say Still here.]]')
  expect(textOf(await run.until(isTurnComplete))).toBe('Still here.')
  expect(run.reported.errors).toHaveLength(1)
})
