import type { Event } from '@google/adk'

import { UNTRANSCRIBED } from '../agent/user-message.ts'
import type { Reply } from '../approvals/understand-reply.ts'
import { LiveMessage } from './live-message.ts'
import type { TurnTaking } from './turn-taking.ts'
import type { Message } from '../protocol/message.ts'

/** A question that clients see, and that speech may decide. */
export interface ShownQuestion {
  readonly approvalId: string
  /** When it was shown, by `performance.now()`. */
  readonly shownAt: number
  /** Whether the transcript of the message that led to the question is complete. */
  readonly isPromptKnown: boolean
}

interface SpokenRepliesOptions {
  readonly listQuestions: () => readonly ShownQuestion[]
  /** Decides one of these approvals by the words of the person. Never rejects. */
  readonly decide: (reply: Reply, approvalIds: ReadonlySet<string>) => void
}

/**
 * A transcript arrives some time after the words were spoken. Words that are recognized earlier than this after a question was shown may
 * have been spoken before it.
 */
const TRANSCRIPT_DELAY_MS = 1_000

/** Finds spoken replies in the transcript of the user's speech. The speech of the model never reaches this class. */
export class SpokenReplies {
  readonly #options: SpokenRepliesOptions
  /** The questions that the person saw when they began to speak. Undefined between two utterances. */
  #seen: ReadonlySet<string> | undefined

  constructor(options: SpokenRepliesOptions) {
    this.#options = options
  }

  /** Adds a piece of the transcript. The last piece (`isFinished`) repeats everything since the previous last one. */
  add(text: string, isFinished: boolean): void {
    if (!isFinished) {
      this.#seen ??= this.#listSeen()
      return
    }
    const seen = this.#seen
    this.#seen = undefined
    const words = text.trim()
    if (seen && seen.size > 0) this.#options.decide({ words, channel: 'spoken' }, seen)
  }

  #listSeen(): ReadonlySet<string> {
    const latest = performance.now() - TRANSCRIPT_DELAY_MS
    const seen = this.#options
      .listQuestions()
      .filter(({ shownAt, isPromptKnown }) => isPromptKnown && shownAt <= latest)
    return new Set(seen.map(({ approvalId }) => approvalId))
  }
}

/** Collects the transcript of the user's speech, and assigns it to the message that replies to it. */
export class SpeechTranscript {
  readonly #turnTaking: TurnTaking<LiveMessage>
  /** The message that receives the transcript. */
  #current: LiveMessage | undefined

  constructor(turnTaking: TurnTaking<LiveMessage>) {
    this.#turnTaking = turnTaking
  }

  /** Adds a piece of the transcript. */
  add({ inputTranscription }: Event): void {
    const { text = '', finished = false } = inputTranscription ?? {}
    // The last piece repeats the whole transcript.
    if (finished) {
      if (this.#current) this.#current.isPromptKnown = true
      return
    }
    if (!this.#current || this.#current.isUserMessageStored) this.#current = this.#findMessage()
    this.#current.transcript += text
  }

  /** Finds the message for new speech. The model may have started its reply before the transcript arrives. */
  #findMessage(): LiveMessage {
    const { speaker } = this.#turnTaking
    if (speaker && !speaker.isUserMessageStored && speaker !== this.#current) {
      this.#turnTaking.apply({ type: 'prompt-recognized' })
      return speaker
    }
    const message = new LiveMessage()
    this.#turnTaking.apply({ type: 'message-sent', message })
    return message
  }
}

/** Returns the user message as transcribed so far. Returns undefined before the first word, and once the message is stored. */
export function partialUserMessage(message: LiveMessage): Message | undefined {
  const text = message.transcript.trim()
  if (message.isUserMessageStored || text === '') return undefined
  return { id: message.userMessageId, role: 'user', parts: [{ type: 'text', text }] }
}

/** Returns the transcript of the user's speech, or a placeholder if there is none. */
export function transcriptOf({ transcript }: LiveMessage): string {
  return transcript.trim() || UNTRANSCRIBED
}
