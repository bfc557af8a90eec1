import { UNTRANSCRIBED } from '../../../agent/user-message.ts'
import type { Message } from '../../../protocol/message.ts'
import { LiveMessage } from './live-message.ts'
import type { TurnTaking } from './turn-taking.ts'

/** A question that clients see, and that speech may decide. */
export interface ShownQuestion {
  readonly approvalId: string
  /** When it was shown, by `performance.now()`. */
  readonly shownAt: number
  /** Whether the transcript of the message that led to the question is complete. */
  readonly isPromptKnown: boolean
}

interface UserSpeechOptions {
  readonly turnTaking: TurnTaking<LiveMessage>
  readonly listQuestions: () => readonly ShownQuestion[]
  /** Receives the words of the person, and the approvals that they saw when they began to speak. Never throws. */
  readonly onWords: (words: string, approvalIds: ReadonlySet<string>) => void
}

/**
 * A transcript arrives some time after the words were spoken. Words that are recognized earlier than this after a question was shown may
 * have been spoken before it.
 */
const TRANSCRIPT_DELAY_MS = 1_000

/** Assigns the transcript of the user's speech to messages, and reports what people say while they see a question. The speech of the model never reaches this class. */
export class UserSpeech {
  readonly #options: UserSpeechOptions
  /** The message that receives the transcript. */
  #message: LiveMessage | undefined
  /** The questions that the person saw when they began to speak. Undefined between two utterances. */
  #seen: ReadonlySet<string> | undefined

  constructor(options: UserSpeechOptions) {
    this.#options = options
  }

  /** Adds a piece of the transcript. The last piece (`isFinished`) repeats everything since the previous last one. */
  add(text: string, isFinished: boolean): void {
    if (isFinished) return this.#finish(text)
    if (!this.#message || this.#isOver(this.#message)) this.#message = this.#findMessage()
    this.#message.transcript += text
    this.#seen ??= this.#listSeen()
  }

  /** Whether new words belong to another message. Until the model has ended a reply that was stopped, late words are those that led to it. */
  #isOver(message: LiveMessage): boolean {
    const isEnding = message.isStopped && this.#options.turnTaking.speaker === message
    return message.isUserMessageStored && (message.isPromptKnown || !isEnding)
  }

  #finish(text: string): void {
    if (this.#message) this.#message.isPromptKnown = true
    const seen = this.#seen
    this.#seen = undefined
    if (seen && seen.size > 0) this.#options.onWords(text.trim(), seen)
  }

  #listSeen(): ReadonlySet<string> {
    const latest = performance.now() - TRANSCRIPT_DELAY_MS
    const seen = this.#options
      .listQuestions()
      .filter(({ shownAt, isPromptKnown }) => isPromptKnown && shownAt <= latest)
    return new Set(seen.map(({ approvalId }) => approvalId))
  }

  /** Finds the message for new speech. The model may have started its reply before the transcript arrives. */
  #findMessage(): LiveMessage {
    const { turnTaking } = this.#options
    const { speaker } = turnTaking
    if (speaker && !speaker.isUserMessageStored && speaker !== this.#message) {
      turnTaking.apply({ type: 'prompt-recognized' })
      return speaker
    }
    const message = new LiveMessage()
    turnTaking.apply({ type: 'message-sent', message })
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
