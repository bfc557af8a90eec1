import type { Reply } from '../approvals/understand-reply.ts'

/** A question that clients see, and that speech may decide. */
export interface ShownQuestion {
  readonly approvalId: string
  /** When it was shown, by `performance.now()`. */
  readonly shownAt: number
  /** Whether the transcript of the message that led to the question is complete. */
  readonly isPromptKnown: boolean
}

export interface SpokenRepliesOptions {
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
