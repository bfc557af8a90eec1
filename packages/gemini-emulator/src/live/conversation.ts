import type { FunctionResponse } from '../wire/content.ts'
import type { ContextUpdate, Setup } from '../wire/live-messages.ts'
import {
  isBlocking,
  readFunctions,
  readText,
  toMemory,
  toPrompt,
  type Effect,
  type LiveEvent,
  type LiveState,
  type Stepped,
} from './live-state.ts'
import type { SetupContext } from './open-setup.ts'
import { performTurn } from './perform-turn.ts'
import type { Delivery } from './plan-turn.ts'
import { proceed, stepLive } from './step-live.ts'
import type { Connection } from './connection.ts'

export interface ConversationContext extends SetupContext {
  readonly connection: Connection
  readonly setup: Setup
  readonly goAway: (timeLeftMs: number) => void
  /** Ends the session because something broke. */
  readonly fail: (error: unknown) => void
  /** How many messages of the client have been taken. */
  readonly consumed: () => number
}

/** Drives the state of one session and carries out what it decides. */
export class Conversation {
  readonly ignoredResponses: FunctionResponse[] = []
  readonly #context: ConversationContext
  #state: LiveState
  #performance = new AbortController()

  constructor(state: LiveState, context: ConversationContext) {
    this.#state = state
    this.#context = context
    context.connection.signal.addEventListener('abort', () => this.#performance.abort(), {
      once: true,
    })
  }

  get state(): LiveState {
    return this.#state
  }

  /** Gives the first handle, and goes on where a resumed session has something left to answer. */
  begin(): void {
    this.#checkpoint()
    this.#settle(proceed(this.#state))
  }

  apply(event: LiveEvent): void {
    if (!this.#context.connection.signal.aborted) this.#settle(stepLive(this.#state, event))
  }

  reconfigure({ systemInstruction, tools }: ContextUpdate): void {
    const config = {
      ...this.#state.config,
      ...(systemInstruction && { systemInstruction: readText(systemInstruction) }),
      ...(tools && { functions: readFunctions(tools) }),
    }
    this.#state = { ...this.#state, config }
  }

  #settle([state, effects]: Stepped): void {
    this.#state = state
    for (const effect of effects) this.#carryOut(effect)
  }

  #carryOut(effect: Effect): void {
    switch (effect.type) {
      case 'send':
        return this.#context.connection.send({ ...effect.message })
      case 'perform':
        return this.#perform(effect.turn)
      case 'abandon':
        return this.#performance.abort()
      case 'ignore':
        this.ignoredResponses.push(effect.response)
        if (this.ignoredResponses.length > this.#context.settings.keepFrames) {
          this.ignoredResponses.shift()
        }
        return
      case 'checkpoint':
        return this.#checkpoint()
    }
  }

  #perform(turn: number): void {
    const { world, connection, goAway, fail } = this.#context
    this.#performance.abort()
    this.#performance = new AbortController()
    const { signal } = this.#performance
    performTurn(toPrompt(this.#state), {
      world,
      connection,
      goAway,
      signal,
      delivery: this.#delivery(),
      perform: (step) => this.apply({ type: 'performed', turn, step }),
    }).catch((error: unknown) => {
      if (!signal.aborted) fail(error)
    })
  }

  #delivery(): Delivery {
    const { world, settings } = this.#context
    const { config } = this.#state
    return {
      model: config.model,
      modality: config.modality,
      transcribe: config.outputTranscription,
      includeThoughts: config.includeThoughts,
      paceMs: world.paceMs,
      realTime: settings.playback === 'real-time',
      isBlocking: (name) => isBlocking(config, name),
      newId: () => world.newId(),
      speak: world.synthesize,
    }
  }

  /** Gives the client a handle to come back with. */
  #checkpoint(): void {
    const { setup, connection, handles, consumed } = this.#context
    const memory = toMemory(this.#state)
    if (!setup.sessionResumption || !memory) return
    connection.send({
      sessionResumptionUpdate: {
        newHandle: handles.issue(memory),
        resumable: true,
        ...(setup.sessionResumption.transparent && {
          lastConsumedClientMessageIndex: String(consumed()),
        }),
      },
    })
  }
}
