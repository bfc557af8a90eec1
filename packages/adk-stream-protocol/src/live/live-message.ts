import { randomUUID } from 'node:crypto'

import type { Event } from '@google/adk'

import { countSpeech } from '../agent/translate/count-audio.ts'
import type { AudioCount } from '../protocol/message.ts'
import type { Turn } from '../turns/turn.ts'
import type { LiveCallState } from './live-calls.ts'
import { Segment } from './segment.ts'

export interface LiveMessageOptions {
  readonly messageId?: string
  readonly userMessageId?: string
  /** Whether its stream stays open while it waits for a person. Default false: it ends, and goes on in another. */
  readonly held?: boolean
  /** What is set in the session state with what the person said. */
  readonly state?: Readonly<Record<string, unknown>>
}

/** What a person said and the message that answers it, as it is made in a live run. */
export class LiveMessage {
  readonly messageId: string
  readonly userMessageId: string
  readonly held: boolean
  readonly state: Readonly<Record<string, unknown>>
  /** What was heard so far, of something that was spoken. */
  heard = ''
  /** How much of the answer was spoken. */
  audio: AudioCount | undefined
  /** Whether what the person said is in the session. */
  written = false
  /** The turn that tells the message now, or told it last. */
  turn: Promise<Turn> | undefined
  /** Whether the person wanted to hear no more of it. */
  stopped = false
  readonly #calls = new Map<string, Exclude<LiveCallState, 'ended'>>()
  #segment: Segment | undefined

  constructor(options: LiveMessageOptions = {}) {
    const { messageId = randomUUID(), userMessageId = randomUUID(), held = false } = options
    this.messageId = messageId
    this.userMessageId = userMessageId
    this.held = held
    this.state = options.state ?? {}
  }

  /** Whether the message is being told. */
  get open(): boolean {
    return this.#segment?.open === true
  }

  /** Begins to tell, from the start or after a pause. */
  begin(): Segment {
    this.#segment = new Segment()
    return this.#segment
  }

  tell(event: Event): void {
    this.audio = countSpeech(this.audio, event.content?.parts ?? [])
    this.#segment?.push(event)
  }

  noteCall(toolCallId: string, state: LiveCallState): void {
    if (state === 'ended') this.#calls.delete(toolCallId)
    else this.#calls.set(toolCallId, state)
  }

  /** Whether a call of it does something. */
  get works(): boolean {
    return this.runs || [...this.#calls.values()].includes('executing')
  }

  /** Whether a call of it runs that is shown to run. */
  get runs(): boolean {
    return [...this.#calls.values()].includes('running')
  }

  /** Whether a call of it waits for a person or a client. */
  get waits(): boolean {
    return [...this.#calls.values()].includes('waiting')
  }

  /** Nothing more comes for now: the message is whole, or it pauses. */
  pause(): void {
    if (this.#segment) this.#segment.leavesCalls = this.runs
    this.#segment?.end()
  }

  fail(error: unknown): void {
    this.#segment?.fail(error)
  }
}
