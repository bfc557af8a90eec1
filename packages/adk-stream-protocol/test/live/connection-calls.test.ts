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

/** Notes its calls and leaves the answer to the test, as a gate does. */
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

/** Notes its calls and holds ADK's loop until the test lets go. */
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
  '[LC11] a call is delivered at once by %s, whether or not its turn is completed (%s)',
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
  '[LC12] an open call outlives its connection and is answered on the next (%s)',
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
  '[LC12] a call that the next connection does not know is told in words, and not made again (%s)',
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

test('[LC13] a call that waits to be read when the connection has ended is not run', async () => {
  await using emulator = await startEmulator()
  const calls: string[] = []
  const hold = defer()
  const tools = [blocker('first', calls, hold.promise), blocker('second', calls, hold.promise)]
  await using run = await runReconnecting(emulator, { tools })
  run.say('[[call-separate first {}]] [[call-separate second {}]]')
  await run.until(isCall)
  const session = await emulator.live.nextSession()
  session.close(1008, 'enough')
  while (run.told.statuses.at(-1) !== 'closed') await new Promise(setImmediate)
  hold.resolve()
  expect(await run.ended).toMatchObject({ code: 1008 })
  expect(calls).toEqual(['first'])
})

test('[LC14] calls that are taken back are told at once, and those not yet read are not run', async () => {
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
  while (run.told.cancelled.length < 2) await new Promise(setImmediate)
  expect(run.told.cancelled).toEqual(ids)
  hold.resolve()
  run.say('[[say Well.]]')
  await run.until((event) => textOf([event]) === 'Well.')
  expect(calls).toEqual(['first'])
})

test.each(['nope', 'constructor', '__proto__', 'toString'])(
  '[LC15] a call of %s, which is no tool, is answered with an error and the run goes on',
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

test('[LC15] tools called beside it are run', async () => {
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

test('[LC15] an answer that the SDK does not take is reported, and ends nothing', async () => {
  await using emulator = await startEmulator()
  await using run = await runReconnecting(emulator)
  run.queue.sendContent({ role: 'user', parts: [{ functionResponse: { name: 'x' } }] })
  run.say('[[say Still here.]]')
  expect(textOf(await run.until(isTurnComplete))).toBe('Still here.')
  expect(run.told.errors).toHaveLength(1)
})
