import { setImmediate as nextLoop } from 'node:timers/promises'

import type { EmulatorCore } from '../emulator-core.ts'
import type { Prompt } from '../responders/responder.ts'
import type { FunctionResponse } from '../wire/content.ts'
import type { ContextUpdate, Setup } from '../wire/live-messages.ts'
import type { Connection } from './connection.ts'
import type { Effect, LiveEvent, LiveState, StateStep, Transition } from './live-state.ts'
import { isBlocking, readFunctions, readText, toPrompt, toResumable } from './live-state.ts'
import { nextLive, startNextTurn } from './next-live.ts'
import { isNonBlockingByDefault } from './live-options.ts'
import type { SetupContext, Lineage } from './open-setup.ts'
import type { TurnSettings, TurnStep } from './plan-turn.ts'
import { planTurn } from './plan-turn.ts'
import { repeatCalls } from './repeat-calls.ts'

interface ConversationContext extends SetupContext {
  readonly connection: Connection
  readonly setup: Setup
  readonly lineage: Lineage
  readonly goAway: (timeLeftMs: number) => void
  /** Closes the session after an error. */
  readonly fail: (error: unknown) => void
  /** Returns the number of client messages processed so far. */
  readonly processed: () => number
}

/** Holds the state of one session and carries out the effects of its events. */
export class Conversation {
  readonly ignoredResponses: FunctionResponse[] = []
  readonly #context: ConversationContext
  #state: LiveState
  #turn = new AbortController()

  constructor(state: LiveState, context: ConversationContext) {
    this.#state = state
    this.#context = context
    context.connection.signal.addEventListener('abort', () => this.#turn.abort(), { once: true })
  }

  get state(): LiveState {
    return this.#state
  }

  /** Sends the first handle, and replies to the queued input of a resumed session. */
  start(): void {
    this.#sendHandle()
    this.#apply(startNextTurn(this.#state))
  }

  dispatch(event: LiveEvent): void {
    if (!this.#context.connection.signal.aborted) this.#apply(nextLive(this.#state, event))
  }

  updateContext({ systemInstruction, tools }: ContextUpdate): void {
    const config = {
      ...this.#state.config,
      ...(systemInstruction && { systemInstruction: readText(systemInstruction) }),
      ...(tools && { functions: readFunctions(tools.tools ?? []) }),
    }
    this.#state = { ...this.#state, config }
  }

  #apply([state, effects]: Transition): void {
    this.#state = state
    for (const effect of effects) this.#run(effect)
  }

  #run(effect: Effect): void {
    switch (effect.type) {
      case 'send':
        return this.#context.connection.send({ ...effect.message })
      case 'start-turn':
        return this.#startTurn(effect.turn)
      case 'abort-turn':
        return this.#turn.abort()
      case 'ignore-response':
        this.ignoredResponses.push(effect.response)
        if (this.ignoredResponses.length > this.#context.settings.keepFrames) {
          this.ignoredResponses.shift()
        }
        return
      case 'send-handle':
        return this.#sendHandle()
    }
  }

  #startTurn(turn: number): void {
    const { core, connection, goAway, fail } = this.#context
    this.#turn.abort()
    this.#turn = new AbortController()
    const { signal } = this.#turn
    playTurn(toPrompt(this.#state), {
      core,
      connection,
      goAway,
      signal,
      repeats: this.#readRepeats(),
      settings: this.#turnSettings(),
      onStep: (step) => this.dispatch({ type: 'turn-step', turn, step }),
    }).catch((error: unknown) => {
      if (!signal.aborted) fail(error)
    })
  }

  #readRepeats(): number {
    const { repeatsEmptyCalls } = this.#context.settings
    if (repeatsEmptyCalls !== 'by-model') return repeatsEmptyCalls
    return isNonBlockingByDefault(this.#state.config.model) ? 2 : 0
  }

  #turnSettings(): TurnSettings {
    const { core, settings } = this.#context
    const { config } = this.#state
    return {
      model: config.model,
      modality: config.modality,
      transcribe: config.outputTranscription,
      includeThoughts: config.includeThoughts,
      paceMs: core.paceMs,
      realTime: settings.playback === 'real-time',
      isBlocking: (name) => isBlocking(config, name),
      newId: () => core.newId(),
      synthesize: core.synthesize,
    }
  }

  /** Sends a resumption handle, if the client asked for handles and no turn is running. */
  #sendHandle(): void {
    const { setup, connection, handles, lineage, processed } = this.#context
    const state = toResumable(this.#state)
    if (!setup.sessionResumption || !state) return
    connection.send({
      sessionResumptionUpdate: {
        newHandle: handles.create({ state, lineage }),
        resumable: true,
        ...(setup.sessionResumption.transparent && {
          lastConsumedClientMessageIndex: String(processed()),
        }),
      },
    })
  }
}

interface TurnContext {
  readonly core: EmulatorCore
  /** How often the model repeats a call whose result is empty. */
  readonly repeats: number
  readonly connection: Connection
  readonly settings: TurnSettings
  /** Aborts when the turn is interrupted or the connection ends. */
  readonly signal: AbortSignal
  /** Called for each step that changes the state of the session. */
  readonly onStep: (step: StateStep) => void
  readonly goAway: (timeLeftMs: number) => void
}

/** Gets a reply from the responder and plays it. Rejects when the signal aborts or there is no reply. */
async function playTurn(prompt: Prompt, context: TurnContext): Promise<void> {
  const { core, settings, signal } = context
  const actions = repeatCalls(prompt.contents, context.repeats) ?? (await core.respond(prompt))
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
