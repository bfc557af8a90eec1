import { setImmediate as nextLoop } from 'node:timers/promises'

import type { EmulatorCore } from '../emulator-core.ts'
import type { Prompt } from '../responders/responder.ts'
import type { Connection } from './connection.ts'
import type { StateStep } from './live-state.ts'
import { planTurn, type TurnSettings, type TurnStep } from './plan-turn.ts'

export interface TurnContext {
  readonly core: EmulatorCore
  readonly connection: Connection
  readonly settings: TurnSettings
  /** Aborts when the turn is interrupted or the connection ends. */
  readonly signal: AbortSignal
  /** Called for each step that changes the state of the session. */
  readonly onStep: (step: StateStep) => void
  readonly goAway: (timeLeftMs: number) => void
}

/** Gets a reply from the responder and plays it. Rejects when the signal aborts or there is no reply. */
export async function playTurn(prompt: Prompt, context: TurnContext): Promise<void> {
  const { core, settings, signal } = context
  const actions = await core.respond(prompt)
  signal.throwIfAborted()
  let steps = 0
  for (const step of planTurn(actions, settings)) {
    await playStep(step, context)
    // Without a pace a long reply would block the event loop, and no input could interrupt it.
    if (++steps % STEPS_PER_LOOP === 0) await nextLoop()
    signal.throwIfAborted()
  }
}

const STEPS_PER_LOOP = 16

async function playStep(step: TurnStep, context: TurnContext): Promise<void> {
  const { core, connection, signal } = context
  switch (step.type) {
    case 'content':
    case 'call':
    case 'complete':
    case 'cancel':
      context.onStep(step)
      return connection.drained()
    case 'pause':
      return core.pause(step.ms, signal)
    case 'wait':
      return core.gates.wait(step.gate, signal)
    case 'raw':
      // A script may send any JSON, not only objects.
      return connection.send(step.message as Parameters<Connection['send']>[0])
    case 'go-away':
      return context.goAway(step.timeLeftMs)
    case 'close':
      return connection.close(step.code, step.reason)
    case 'drop':
      return connection.drop()
  }
}
