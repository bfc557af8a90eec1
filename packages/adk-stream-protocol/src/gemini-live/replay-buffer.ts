import type { Content, FunctionCall } from '@google/genai'

import { describeHistory } from './describe-history.ts'
import type { Entry, Progress, Sending, Sent } from './replay-entry.ts'
import {
  isAsking,
  isBeyondReturn,
  isResults,
  isSent,
  isWaiting,
  toAskAgain,
  toContent,
} from './replay-entry.ts'

/** How to begin the next connection: from a handle, or from nothing but a history. */
export type Beginning =
  | { readonly type: 'resumed'; readonly handle: string }
  | { readonly type: 'fresh'; readonly history: readonly Content[] }

// A message that ends the connection each time it is asked must not do so for ever.
const MAX_DELIVERIES = 3

// What was sent this long before a handle came was not on its way when the handle was given.
const CROSSING_MS = 1000

/**
 * What a lost connection would take with it. A handle stands for all that Gemini told before it, but messages may have crossed it
 * on the way: those count as covered once the model has reacted to them, or after a while. The rest is kept, and told to the next connection once.
 */
export class LiveJournal {
  #history: Content[] = []
  #since: Entry[] = []
  #handle: string | undefined
  #isSpeaking = false
  /** A handle given right after a history was sent may be older than the history. */
  #knowsHistory = true
  /** Calls that only an earlier connection knew. */
  readonly #lost = new Set<string>()
  readonly #calls = new Set<string>()

  readonly #now: () => number
  /** Whether the conversation was begun elsewhere, with calls that are not known here. */
  readonly #isResumed: boolean

  /** `history` is what stands behind the handle. */
  constructor(handle?: string, history: readonly Content[] = [], now = Date.now) {
    this.#now = now
    this.#handle = handle
    this.#isResumed = handle !== undefined
    this.#history = describeHistory(history)
  }

  get isSpeaking(): boolean {
    return this.#isSpeaking
  }

  /** Nothing would be lost if the connection ended now. */
  get isCovered(): boolean {
    return this.#since.length === 0
  }

  get unsent(): readonly Sent[] {
    return this.#since.filter(isSent).filter(({ progress }) => progress === 'unsent')
  }

  /** Whether the present connection does not know a call: it was lost with another, or made to another agent. */
  isLost(toolCallId: string | undefined): boolean {
    if (toolCallId === undefined) return false
    return this.#lost.has(toolCallId) || (!this.#isResumed && !this.#calls.has(toolCallId))
  }

  /** A call came that nobody runs; its refusal is a result like any other. */
  noteCall({ id = '' }: FunctionCall): void {
    this.#calls.add(id)
  }

  /** A history is sent before the conversation begins. */
  begin(history: readonly Content[]): readonly Content[] {
    this.#handle = undefined
    this.#knowsHistory = history.length === 0
    this.#history = describeHistory(history)
    return this.#history
  }

  send(sending: Sending): Sent {
    const entry: Sent = { type: 'sent', sending, progress: 'unsent', deliveries: 0, deliveredAt: 0 }
    this.#since.push(entry)
    return entry
  }

  delivered(entry: Sent): void {
    entry.progress = this.#isSpeaking ? 'talked-over' : 'sent'
    entry.deliveries += 1
    entry.deliveredAt = this.#now()
  }

  discard(entry: Sent): void {
    this.#since = this.#since.filter((other) => other !== entry)
  }

  /** The person said this, as far as it was understood. */
  hear(text: string): void {
    const last = this.#since.at(-1)
    if (last?.type === 'heard' && last.progress !== 'answered') last.text += text
    else this.#since.push({ type: 'heard', text, progress: this.#isSpeaking ? 'taken' : 'sent' })
  }

  /** The model says this; sound without a transcript is an empty text. */
  say(text: string): void {
    if (!this.#isSpeaking) this.#react()
    this.#isSpeaking = true
    const last = this.#since.at(-1)
    if (last?.type === 'said' && last.progress === 'taken') last.text += text
    else this.#since.push({ type: 'said', text, progress: 'taken' })
  }

  call(call: FunctionCall): void {
    this.#react()
    // It waits for the answer, and no longer speaks.
    this.#isSpeaking = false
    this.noteCall(call)
    this.#since.push({ type: 'called', call })
  }

  endTurn(): void {
    // A turn that was over before it began, because something else was sent.
    if (!this.#since.some((entry) => entry.type !== 'called' && entry.progress === 'taken')) {
      this.#react()
    }
    this.#isSpeaking = false
    this.#move('taken', 'answered')
    this.#move('talked-over', 'sent')
  }

  /** Gemini gave a handle for the conversation as it stands. */
  checkpoint(handle: string): void {
    if (!this.#knowsHistory) return
    this.#handle = handle
    const latest = this.#now() - CROSSING_MS
    const mayHaveCrossed = (entry: Entry): boolean =>
      isSent(entry) &&
      isWaiting(entry) &&
      (entry.progress === 'unsent' || entry.deliveredAt > latest)
    this.#remember(this.#since.filter((entry) => !mayHaveCrossed(entry)))
    this.#since = this.#since.filter(mayHaveCrossed)
  }

  /** Gemini refused the handle; false if there was none to refuse. */
  forgetHandle(): boolean {
    const had = this.#handle !== undefined
    this.#handle = undefined
    return had
  }

  /** Prepares for a new connection. What is to be sent again is `unsent` afterwards; what was sent too often is given back. */
  restart(): { readonly beginning: Beginning; readonly givenUp: readonly Sent[] } {
    this.#isSpeaking = false
    const givenUp = this.#since
      .filter(isSent)
      .filter(({ deliveries, progress }) => deliveries >= MAX_DELIVERIES && progress !== 'answered')
    this.#since = this.#since.filter((entry) => !isSent(entry) || !givenUp.includes(entry))
    const handle = this.#handle
    if (handle !== undefined && !this.#since.some(isBeyondReturn)) {
      this.#since = this.#since.flatMap(toAskAgain)
      return { beginning: { type: 'resumed', handle }, givenUp }
    }
    return { beginning: { type: 'fresh', history: this.#startAfresh() }, givenUp }
  }

  /**
   * All up to the last call becomes history: asked again, the model would call again, and a payment would be made twice. So does
   * what was answered. The rest is asked again.
   */
  #startAfresh(): readonly Content[] {
    const lastCall = this.#since.findLastIndex(({ type }) => type === 'called')
    const isPast = (entry: Entry, index: number): boolean =>
      entry.type === 'called' ||
      entry.progress === 'answered' ||
      (entry.progress === 'taken' && index < lastCall)
    const past = this.#since.filter(isPast)
    this.#since = this.#since.filter((entry, index) => !isPast(entry, index)).flatMap(toAskAgain)
    this.#remember(past)
    for (const id of this.#calls) this.#lost.add(id)
    this.#calls.clear()
    this.#handle = undefined
    this.#knowsHistory = this.#history.length === 0
    return this.#history
  }

  /** The model begins to speak: about the results if there are any, else about the first thing that waits. */
  #react(): void {
    this.#knowsHistory = true
    const waiting = this.#since.filter(isAsking).filter(({ progress }) => progress === 'sent')
    const results = waiting.filter(isResults)
    for (const entry of results.length > 0 ? results : waiting.slice(0, 1)) entry.progress = 'taken'
  }

  #move(from: Progress, to: 'sent' | 'taken' | 'answered'): void {
    for (const entry of this.#since) {
      if (entry.type === 'called' || entry.progress !== from) continue
      // What the model said is never less than taken.
      if (entry.type !== 'said') entry.progress = to
      else if (to === 'answered') entry.progress = to
    }
  }

  #remember(entries: readonly Entry[]): void {
    if (entries.length > 0) {
      this.#history = describeHistory([...this.#history, ...entries.map(toContent)])
    }
  }
}
