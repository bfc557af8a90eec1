import type { Content, FunctionCall, FunctionResponse, Part } from '@google/genai'

import { readCallName } from '../../../agent/events/input-names.ts'
import { SparseSet } from '../../../shared/collections.ts'

/** A message that must reach the model. Audio is not one: it may be lost with its connection. */
export type Outgoing =
  | { readonly type: 'content'; readonly content: Content }
  | { readonly type: 'results'; readonly responses: readonly FunctionResponse[] }
  /** Responses to calls that continue (`willContinue`). The model does not reply to them. */
  | { readonly type: 'partial-results'; readonly responses: readonly FunctionResponse[] }

/**
 * The delivery state of a message. `sent-during-speech`: sent while the model was speaking, so the rest of that turn is not a reply to it.
 * `replying`: the model has started to reply. `replied`: the turn with the reply has ended.
 */
type Progress = 'unsent' | 'sent-during-speech' | 'sent' | 'replying' | 'replied'

/** An outgoing message and its delivery state. */
export interface Delivery {
  readonly type: 'delivery'
  readonly message: Outgoing
  progress: Progress
  attempts: number
  sentAt: number
}

type Entry =
  | Delivery
  | { readonly type: 'user-speech'; text: string; progress: Progress }
  | { readonly type: 'model-speech'; text: string; progress: 'replying' | 'replied' }
  | { readonly type: 'call'; readonly call: FunctionCall }

/** How the next connection starts: from a resumption handle, or from a history. */
export type ConnectionStart =
  | { readonly type: 'resumed'; readonly handle: string }
  | { readonly type: 'fresh'; readonly history: readonly Content[] }

/** Gemini may close the connection each time a message is sent. After this many attempts the message is dropped. */
const MAX_ATTEMPTS = 3

/** A handle covers a message that was sent at least this long before the handle arrived. */
const HANDLE_RACE_MS = 1000

/**
 * Holds everything that would be lost with the connection. A resumption handle covers all messages that Gemini had received when it
 * issued the handle. A message may have been in transit at that moment: it counts as covered once the model has reacted to it, or after
 * `HANDLE_RACE_MS`. The buffer keeps the rest, and the next connection receives it once.
 */
export class ReplayBuffer {
  #history: Content[] = []
  /** Entries that the handle does not cover. */
  #entries: Entry[] = []
  #handle: string | undefined
  #isSpeaking = false
  /** False until the model reacts to a history: a handle that arrives before may not cover it. */
  #hasReadHistory = true
  /** Calls that only an earlier connection knows. */
  readonly #lostCalls = new SparseSet<string>()
  readonly #calls = new SparseSet<string>()

  readonly #now: () => number
  /** Whether the connection was resumed from a handle of another process. Then the model knows calls that this buffer does not. */
  #isResumed: boolean

  /** `history` is the conversation that the handle covers. */
  constructor(handle?: string, history: readonly Content[] = [], now = () => performance.now()) {
    this.#now = now
    this.#handle = handle
    this.#isResumed = handle !== undefined
    this.#history = describeHistory(history)
  }

  get isSpeaking(): boolean {
    return this.#isSpeaking
  }

  /** Whether nothing would be lost if the connection ended now, except partial results. */
  get isEmpty(): boolean {
    return this.#entries.every(isPartial)
  }

  /** The handle that covers everything so far, if there is one. */
  get coveringHandle(): string | undefined {
    return this.isEmpty && !this.#isSpeaking ? this.#handle : undefined
  }

  get unsent(): readonly Delivery[] {
    return this.#entries.filter(isDelivery).filter(({ progress }) => progress === 'unsent')
  }

  /** Whether the current connection does not know a call: it was made on an earlier connection, or by another agent. */
  isLost(toolCallId: string | undefined): boolean {
    if (toolCallId === undefined) return false
    return this.#lostCalls.has(toolCallId) || (!this.#isResumed && !this.#calls.has(toolCallId))
  }

  /** Replaces the history before the conversation starts. Returns it as the model can read it. */
  setHistory(history: readonly Content[]): readonly Content[] {
    this.#handle = undefined
    this.#hasReadHistory = history.length === 0
    this.#history = describeHistory(history)
    return this.#history
  }

  /** Adds a message that is not sent yet. */
  add(message: Outgoing): Delivery {
    const delivery: Delivery = {
      type: 'delivery',
      message,
      progress: 'unsent',
      attempts: 0,
      sentAt: 0,
    }
    this.#entries.push(delivery)
    return delivery
  }

  markSent(delivery: Delivery): void {
    delivery.progress = this.#isSpeaking ? 'sent-during-speech' : 'sent'
    delivery.attempts += 1
    delivery.sentAt = this.#now()
  }

  remove(delivery: Delivery): void {
    this.#entries = this.#entries.filter((entry) => entry !== delivery)
  }

  /** Adds a piece of the transcript of the user's speech. */
  addUserSpeech(text: string): void {
    const last = this.#entries.at(-1)
    if (last?.type === 'user-speech' && last.progress !== 'replied') last.text += text
    else
      this.#entries.push({
        type: 'user-speech',
        text,
        progress: this.#isSpeaking ? 'replying' : 'sent',
      })
  }

  /** Adds a piece of the model's output. Audio without a transcript is an empty text. */
  addModelSpeech(text: string): void {
    if (!this.#isSpeaking) this.#startReply()
    this.#isSpeaking = true
    const last = this.#entries.at(-1)
    if (last?.type === 'model-speech' && last.progress === 'replying') last.text += text
    else this.#entries.push({ type: 'model-speech', text, progress: 'replying' })
  }

  /** Adds a call. The model waits for its result and does not speak. */
  addCall(call: FunctionCall): void {
    this.#startReply()
    this.#isSpeaking = false
    this.registerCall(call)
    this.#entries.push({ type: 'call', call })
  }

  /** Records that the current connection knows a call, without keeping the call. */
  registerCall({ id = '' }: FunctionCall): void {
    this.#calls.add(id)
  }

  endTurn(): void {
    // The turn was interrupted before it had any output.
    if (!this.#entries.some((entry) => entry.type !== 'call' && entry.progress === 'replying')) {
      this.#startReply()
    }
    this.#isSpeaking = false
    this.#advance('replying', 'replied')
    this.#advance('sent-during-speech', 'sent')
  }

  /** Stores a new handle. Everything that it covers becomes history. */
  checkpoint(handle: string): void {
    if (!this.#hasReadHistory) return
    this.#handle = handle
    const latest = this.#now() - HANDLE_RACE_MS
    const isUncovered = (entry: Entry): boolean =>
      isDelivery(entry) &&
      isAwaitingReply(entry) &&
      (entry.progress === 'unsent' || entry.sentAt > latest)
    this.#appendHistory(this.#entries.filter((entry) => !isUncovered(entry)))
    this.#entries = this.#entries.filter(isUncovered)
  }

  /** Drops a handle that Gemini rejected. Returns false if there was none. */
  dropHandle(): boolean {
    const had = this.#handle !== undefined
    this.#handle = undefined
    return had
  }

  /** Prepares a new connection: messages to resend become `unsent`. Returns the messages that were sent too often and are dropped. */
  prepareReconnect(): { readonly start: ConnectionStart; readonly dropped: readonly Delivery[] } {
    this.#isSpeaking = false
    const dropped = this.#entries
      .filter(isDelivery)
      .filter(({ attempts, progress }) => attempts >= MAX_ATTEMPTS && progress !== 'replied')
    // The session of the handle would wait for a dropped result forever. A fresh connection reads the result in its history.
    for (const entry of dropped) if (isResults(entry)) entry.progress = 'replied'
    this.#entries = this.#entries.filter(
      (entry) => !isDelivery(entry) || !dropped.includes(entry) || isResults(entry),
    )
    const lost = dropped.filter((entry) => !isPartial(entry))
    const handle = this.#handle
    if (handle !== undefined && !this.#entries.some(isNotResumable)) {
      this.#entries = this.#entries.flatMap(toResend)
      return { start: { type: 'resumed', handle }, dropped: lost }
    }
    return { start: { type: 'fresh', history: this.#startFresh() }, dropped: lost }
  }

  /**
   * Turns everything up to the last call into history: if it were resent, the model would call again, and a payment would be made twice.
   * Replies become history too. The rest is resent.
   */
  #startFresh(): readonly Content[] {
    const lastCall = this.#entries.findLastIndex(({ type }) => type === 'call')
    const isPast = (entry: Entry, index: number): boolean =>
      entry.type === 'call' ||
      isPartial(entry) ||
      entry.progress === 'replied' ||
      (entry.progress === 'replying' && index < lastCall)
    const past = this.#entries.filter(isPast)
    this.#entries = this.#entries.filter((entry, index) => !isPast(entry, index)).flatMap(toResend)
    this.#appendHistory(past)
    for (const id of this.#calls) this.#lostCalls.add(id)
    this.#calls.clear()
    this.#isResumed = false
    this.#handle = undefined
    this.#hasReadHistory = this.#history.length === 0
    return this.#history
  }

  /** The model starts a reply: to all results if there are any, else to the first input without a reply. */
  #startReply(): void {
    this.#hasReadHistory = true
    const waiting = this.#entries.filter(isInput).filter(({ progress }) => progress === 'sent')
    const results = waiting.filter(isResults)
    for (const entry of results.length > 0 ? results : waiting.slice(0, 1))
      entry.progress = 'replying'
  }

  #advance(from: Progress, to: 'sent' | 'replied'): void {
    for (const entry of this.#entries) {
      if (entry.type === 'call' || entry.progress !== from) continue
      if (entry.type !== 'model-speech') entry.progress = to
      else if (to === 'replied') entry.progress = to
    }
  }

  #appendHistory(entries: readonly Entry[]): void {
    if (entries.length > 0) {
      this.#history = describeHistory([...this.#history, ...entries.map(toEntryContent)])
    }
  }
}

function isDelivery(entry: Entry): entry is Delivery {
  return entry.type === 'delivery'
}

function isInput(entry: Entry): entry is Extract<Entry, { type: 'delivery' | 'user-speech' }> {
  return (entry.type === 'delivery' && !isPartial(entry)) || entry.type === 'user-speech'
}

/** Whether an entry needs no reply, because it only says that calls continue. */
function isPartial(entry: Entry): boolean {
  return isDelivery(entry) && entry.message.type === 'partial-results'
}

function isResults(entry: Entry): boolean {
  return isDelivery(entry) && entry.message.type === 'results'
}

function isAwaitingReply({ progress }: Delivery): boolean {
  return progress !== 'replying' && progress !== 'replied'
}

/** Whether a session that resumes from an older handle cannot get back to this entry by resending messages. */
function isNotResumable(entry: Entry): boolean {
  return entry.type === 'call' || entry.progress === 'replied'
}

/** The messages that the next connection receives in place of an entry. A partial reply is dropped: the model repeats it. */
function toResend(entry: Entry): Entry[] {
  if (entry.type === 'delivery') return [{ ...entry, progress: 'unsent' }]
  if (entry.type !== 'user-speech' || entry.progress !== 'replying') return []
  const content = { role: 'user', parts: [{ text: entry.text }] }
  return [
    {
      type: 'delivery',
      message: { type: 'content', content },
      progress: 'unsent',
      attempts: 1,
      sentAt: 0,
    },
  ]
}

function toEntryContent(entry: Entry): Content {
  switch (entry.type) {
    case 'model-speech':
      return { role: 'model', parts: [{ text: entry.text }] }
    case 'user-speech':
      return { role: 'user', parts: [{ text: entry.text }] }
    case 'call':
      return { role: 'model', parts: [{ functionCall: entry.call }] }
    case 'delivery':
      return toDeliveryContent(entry.message)
  }
}

function toDeliveryContent(message: Outgoing): Content {
  if (message.type === 'content') return message.content
  return {
    role: 'user',
    parts: message.responses.map((functionResponse) => ({ functionResponse })),
  }
}

/** The length of the history that a new connection receives, in characters. About 16 000 tokens of English. */
const MAX_HISTORY_LENGTH = 64_000

const LEFT_OUT = '[Earlier parts of this conversation are left out.]'

/**
 * Converts a conversation into a history that a live model accepts: text unchanged, calls and results as short lines, media by its type.
 * Live models accept no function parts in a history. If it is too long, the oldest parts are replaced by a note.
 */
export function describeHistory(
  contents: readonly Content[],
  maxLength = MAX_HISTORY_LENGTH,
): Content[] {
  const described = contents.flatMap(describeContent)
  const kept: Content[] = []
  let room = maxLength
  for (const content of described.toReversed()) {
    const text = textOf(content)
    if (text === LEFT_OUT) break
    if (text.length > room) {
      // A single text that is too long is truncated.
      if (kept.length === 0) kept.push(toContent(content.role, text.slice(-maxLength)))
      break
    }
    kept.push(content)
    room -= text.length
  }
  const isComplete =
    kept.length === described.length && textOf(kept[0]).length === textOf(described.at(-1)).length
  if (!isComplete) kept.push(toContent('user', LEFT_OUT))
  return kept.toReversed()
}

function describeContent({ role, parts = [] }: Content): Content[] {
  const text = parts.map(describePart).filter(Boolean).join('\n')
  return text === '' ? [] : [toContent(role, text)]
}

function describePart(part: Part): string {
  const { functionCall, functionResponse, inlineData, fileData } = part
  if (part.thought) return ''
  if (part.text !== undefined) return part.text
  if (functionCall)
    return `[called ${readCallName(functionCall.name ?? '')}(${JSON.stringify(functionCall.args ?? {})})]`
  if (functionResponse) return describeResult(functionResponse)
  const media = inlineData?.mimeType ?? fileData?.mimeType
  return media === undefined ? '' : `[sent ${media}]`
}

/** Returns the result of a call as one line of text. */
export function describeResult({
  name,
  response,
}: {
  readonly name?: string
  readonly response?: unknown
}): string {
  return `[${name} returned ${JSON.stringify(response ?? {})}]`
}

function toContent(role: string | undefined, text: string): Content {
  return { role: role === 'model' ? 'model' : 'user', parts: [{ text }] }
}

function textOf(content: Content | undefined): string {
  return content?.parts?.[0]?.text ?? ''
}
