import type { FunctionResponse } from '../wire/content.ts'
import type { ContextUpdate, Setup } from '../wire/live-messages.ts'
import type { Connection } from './connection.ts'
import {
  isBlocking,
  readFunctions,
  readText,
  toPrompt,
  toResumable,
  type Effect,
  type LiveEvent,
  type LiveState,
  type Transition,
} from './live-state.ts'
import { nextLive, startNextTurn } from './next-live.ts'
import type { SetupContext } from './open-setup.ts'
import type { Lineage } from './resumption-handles.ts'
import type { TurnSettings } from './plan-turn.ts'
import { playTurn } from './play-turn.ts'

export interface ConversationContext extends SetupContext {
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
      ...(tools && { functions: readFunctions(tools) }),
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
      settings: this.#turnSettings(),
      onStep: (step) => this.dispatch({ type: 'turn-step', turn, step }),
    }).catch((error: unknown) => {
      if (!signal.aborted) fail(error)
    })
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
