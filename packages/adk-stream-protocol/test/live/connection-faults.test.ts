import { setImmediate as nextLoop } from 'node:timers/promises'

import { LongRunningFunctionTool } from '@google/adk'
import { startEmulator, type Emulator } from 'gemini-emulator'
import { expect, test } from 'vitest'
import { z } from 'zod'

import {
  allClosed,
  FLASH_LIVE,
  isCall,
  NATIVE_AUDIO,
  runReconnecting,
  textOf,
} from './support/reconnecting-run.ts'

/** Pseudo-random numbers, the same in every run. */
function dice(seed: number): (sides: number) => number {
  let state = seed
  return (sides) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * sides)
  }
}

/** Ends the newest connection in one of several ways, after a short delay. */
async function doHarm(emulator: Emulator, roll: (sides: number) => number): Promise<void> {
  const delay = roll(8)
  const way = roll(5)
  for (let loop = 0; loop < delay; loop += 1) await nextLoop()
  const session = emulator.live.sessions.findLast(({ closed }) => closed === undefined)
  if (way === 0) session?.close(1011, 'broken')
  else if (way === 1) session?.goAway(20)
  else if (way === 2) session?.sendText('{')
  else session?.drop()
}

test.each([
  [NATIVE_AUDIO, 1],
  [NATIVE_AUDIO, 2],
  [FLASH_LIVE, 3],
  [FLASH_LIVE, 4],
])(
  '[LC3] [LC9] [LC12] with random connection losses, every message gets one reply and every payment runs once (%s, %i)',
  async (model, seed) => {
    const roll = dice(seed)
    // Gemini accepts some handles and rejects others.
    await using emulator = await startEmulator({ live: { handleLifetimeMs: 15 } })
    const due: number[] = []
    const paid: number[] = []
    const pay = new LongRunningFunctionTool({
      name: 'pay',
      description: 'Pays.',
      parameters: z.object({ amount: z.number() }),
      execute: ({ amount }) => void paid.push(amount),
    })
    const run = await runReconnecting(emulator, { model, tools: [pay] })
    await emulator.live.nextSession()
    for (let turn = 1; turn <= 30; turn += 1) {
      const harm = doHarm(emulator, roll)
      if (roll(2) === 0) {
        run.say(`[[say Turn]] [[say ${turn}.]]`)
        await run.until((event) => textOf([event]).endsWith(`Turn${turn}.`))
      } else {
        run.say(`[[call pay {"amount": ${turn}}]]`)
        const [part] = (await run.until(isCall)).at(-1)?.content?.parts ?? []
        due.push(turn)
        const more = doHarm(emulator, roll)
        run.answer(part?.functionCall?.id ?? '', 'pay', { paid: turn })
        await more
      }
      await harm
    }
    await run[Symbol.asyncDispose]()
    expect(paid).toEqual(due)
    expect(emulator.live.sessions.length).toBeGreaterThan(10)
    expect(await run.ended).toBeUndefined()
    await allClosed(emulator)
  },
)
