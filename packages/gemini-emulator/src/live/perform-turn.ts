import { setImmediate as nextLoop } from 'node:timers/promises'

import type { Prompt } from '../mind.ts'
import type { World } from '../world.ts'
import type { Performed } from './live-state.ts'
import { planTurn, type Delivery, type Step } from './plan-turn.ts'
import type { Connection } from './connection.ts'

/** What a turn is played on. */
export interface Stage {
  readonly world: World
  readonly connection: Connection
  readonly delivery: Delivery
  /** Aborts when the turn is interrupted or the connection ends. */
  readonly signal: AbortSignal
  /** Takes the steps that concern the conversation. */
  readonly perform: (step: Performed) => void
  readonly goAway: (timeLeftMs: number) => void
}

/** Asks the mind and plays its answer; rejects when the signal aborts or the mind has no answer. */
export async function performTurn(prompt: Prompt, stage: Stage): Promise<void> {
  const { world, delivery, signal } = stage
  const acts = await world.think(prompt)
  signal.throwIfAborted()
  let steps = 0
  for (const step of planTurn(acts, delivery)) {
    await playStep(step, stage)
    // Without a pace a long answer would run in one go, and nobody could interrupt it.
    if (++steps % STEPS_IN_ONE_GO === 0) await nextLoop()
    signal.throwIfAborted()
  }
}

const STEPS_IN_ONE_GO = 16

async function playStep(step: Step, stage: Stage): Promise<void> {
  const { world, connection, signal } = stage
  switch (step.type) {
    case 'show':
    case 'call':
    case 'complete':
    case 'cancel':
      stage.perform(step)
      return connection.drained()
    case 'pause':
      return world.pause(step.ms, signal)
    case 'wait':
      return world.gates.wait(step.gate, signal)
    case 'raw':
      // A script may send anything; what is not an object is sent as JSON all the same.
      return connection.send(step.message as Parameters<Connection['send']>[0])
    case 'go-away':
      return stage.goAway(step.timeLeftMs)
    case 'close':
      return connection.close(step.code, step.reason)
    case 'drop':
      return connection.drop()
  }
}
