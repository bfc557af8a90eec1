import { randomUUID } from 'node:crypto'

import type { Event } from '@google/adk'

import { countSpeech } from '../../../agent/translate/count-usage.ts'
import type { AudioCount } from '../../../protocol/message.ts'
import { AsyncQueue } from '../../../shared/async.ts'
import { SparseMap, SparseSet } from '../../../shared/collections.ts'
import type { Turn } from '../../../turns/turn.ts'
import { RepeatedText } from './repeated-text.ts'
import { isOutage, repeatWhileAway } from './store-away.ts'
import type { TurnTaking } from './turn-taking.ts'

/**
 * - `executing`: it runs after an approval, so clients saw it wait before.
 * - `asking`: it runs, and its MCP server waits for the answer of a person.
 */
export type LiveCallState = 'running' | 'executing' | 'waiting' | 'asking' | 'ended'

export interface LiveMessageOptions {
  readonly messageId?: string
  readonly userMessageId?: string
  /** Whether the stream stays open while calls wait for the user. Default false: it ends, and a later one continues the message. */
  readonly held?: boolean
  /** Whether an earlier live session has streamed and stored the message up to a pause. Default false. */
  readonly isContinued?: boolean
  /** Session state that is set with the user's message. */
  readonly state?: Readonly<Record<string, unknown>>
}

/** One streamed section of a message: from its start or a pause to the next pause or its end. */
interface MessageStream {
  readonly events: AsyncQueue<Event>
  /** Whether calls were still running when the section ended. */
  hasRunningCalls: boolean
}

/** `stopped`: the user stopped the reply. */
type StreamState =
  | { readonly state: 'new' }
  | { readonly state: 'started'; readonly stream: MessageStream }
  | { readonly state: 'stopped' }

/** A user message and the assistant message that replies to it. */
export class LiveMessage {
  readonly messageId: string
  readonly userMessageId: string
  readonly held: boolean
  readonly isContinued: boolean
  readonly state: Readonly<Record<string, unknown>>
  /** The transcript of the user's speech so far. Empty if the user wrote the message. */
  transcript = ''
  isUserMessageStored: boolean
  /** The append of the user's speech. */
  storing: Promise<void> | undefined
  /** Whether the model has replied anything, or has made a call, since the last result of a call. */
  hasOutput: boolean
  /** Whether all words of the user are known: they typed the message, or its transcript is complete. */
  isPromptKnown: boolean
  /** The reply's text and thoughts that clients have, in case the model starts the reply again. */
  readonly said = { text: new RepeatedText(), thought: new RepeatedText() }
  /** How much audio the reply has. */
  audio: AudioCount | undefined
  /** The turn that streams the message, or the last one that did. */
  turn: Promise<Turn> | undefined
  readonly #calls = new Map<string, Exclude<LiveCallState, 'ended'>>()
  #stream: StreamState = { state: 'new' }

  constructor(options: LiveMessageOptions = {}) {
    const { messageId = randomUUID(), userMessageId = randomUUID(), held = false } = options
    this.messageId = messageId
    this.userMessageId = userMessageId
    this.held = held
    this.isContinued = options.isContinued ?? false
    this.isUserMessageStored = this.isContinued
    this.isPromptKnown = this.isContinued
    this.hasOutput = this.isContinued
    this.state = options.state ?? {}
  }

  get isStreaming(): boolean {
    return this.#stream.state === 'started' && this.#stream.stream.events.isOpen
  }

  get isStopped(): boolean {
    return this.#stream.state === 'stopped'
  }

  /** Starts to stream, at the beginning or after a pause. */
  start(): MessageStream {
    const stream: MessageStream = { events: new AsyncQueue(), hasRunningCalls: false }
    this.#stream = { state: 'started', stream }
    return stream
  }

  push(event: Event): void {
    this.audio = countSpeech(this.audio, event.content?.parts ?? [])
    if (this.#stream.state === 'started') this.#stream.stream.events.push(event)
  }

  /** Ends the stream: the message is complete, or it pauses. */
  pause(): void {
    if (this.#stream.state !== 'started') return
    const { stream } = this.#stream
    stream.hasRunningCalls = this.hasRunningCalls
    stream.events.close()
  }

  fail(error: unknown): void {
    if (this.#stream.state === 'started') this.#stream.stream.events.fail(error)
  }

  /** Ends the stream because the user stopped the reply. */
  stop(): void {
    this.pause()
    this.#stream = { state: 'stopped' }
  }

  /** Allows a stopped message to stream again. */
  allowStream(): void {
    if (this.#stream.state === 'stopped') this.#stream = { state: 'new' }
  }

  setCallState(toolCallId: string, state: LiveCallState): void {
    if (state === 'ended') this.#calls.delete(toolCallId)
    else this.#calls.set(toolCallId, state)
  }

  /** Whether a call runs, approved or not. */
  get isWorking(): boolean {
    return this.#hasCallIn('running') || this.#hasCallIn('executing')
  }

  /** Whether a call runs that clients see as running. */
  get hasRunningCalls(): boolean {
    return this.#hasCallIn('running') || this.#hasCallIn('asking')
  }

  /** Whether a call waits for a decision, for an answer or for the output of a browser tool. */
  get hasWaitingCalls(): boolean {
    return this.#hasCallIn('waiting') || this.#hasCallIn('asking')
  }

  #hasCallIn(state: LiveCallState): boolean {
    return [...this.#calls.values()].some((other) => other === state)
  }
}

/** What a turn streams of a message. */
export interface TurnStream {
  readonly events: AsyncQueue<Event>
  /** Whether calls still run at the end of the events. */
  readonly leavesCalls: () => boolean
  /** Whether an earlier turn has streamed the message up to a pause. */
  readonly resumes: boolean
  /** Whether no client requested the turn. */
  readonly background: boolean
  /** The message that the model replies to. */
  readonly userMessageId: string
  /** LV1962: stores that message, if it was spoken. Before the reply, if that is stopped or fails. */
  readonly storePrompt: () => Promise<void>
}

/** What the messages need of their conversation. */
interface LiveMessagesOptions {
  readonly turnTaking: TurnTaking<LiveMessage>
  /** Streams a message in a turn of its chat, after the previous turn has ended. */
  openTurn(messageId: string, stream: TurnStream): Promise<Turn>
  /** A turn started that no client requested. */
  onTurn(turn: Turn, message: LiveMessage): void
  /** The user stopped a message. */
  onStop(message: LiveMessage): void
  /** Stores the user message of a reply, if it was spoken and is not stored. */
  storePrompt(message: LiveMessage): Promise<void>
  readonly onError: (error: unknown) => void
}

/** A message pauses when the model has waited for calls this long without output: it may make further calls. */
const IDLE_MS = 100

/** The incomplete messages of a live conversation. */
export class LiveMessages {
  readonly #options: LiveMessagesOptions
  readonly #messages = new SparseMap<string, LiveMessage>()
  readonly #byCall = new SparseMap<string, LiveMessage>()
  /** Calls that the model made after the user stopped the reply. They are neither stored nor streamed. */
  readonly #unstoredCalls = new SparseSet<string>()
  #idleTimer: NodeJS.Timeout | undefined
  /** How many requests are recording responses. */
  #recording = 0
  /** Messages that would have paused meanwhile. */
  readonly #keptOpen = new SparseSet<LiveMessage>()

  constructor(options: LiveMessagesOptions) {
    this.#options = options
  }

  /** Whether a call runs or the model replies. Calls that wait for the user do not count. */
  get isBusy(): boolean {
    return this.isOtherBusy(undefined)
  }

  /** Whether a call of another message runs, or the model replies to another one. */
  isOtherBusy(message: LiveMessage | undefined): boolean {
    return [...this.#messages.values()].some((other) => other !== message && this.#isBusy(other))
  }

  /** Returns the turn that continues a message after a client's response. Returns undefined if the message is unknown. */
  async turnOf(messageId: string): Promise<Turn | undefined> {
    const message = this.#messages.get(messageId)
    if (!message) return undefined
    return message.isStreaming
      ? message.turn
      : this.open(message, { background: false, resumes: true })
  }

  isStreaming(messageId: string): boolean {
    return this.#messages.get(messageId)?.isStreaming === true
  }

  /** Whether more of a message is streamed, or will be, without a response of the user. */
  isExpected(messageId: string): boolean {
    const message = this.#messages.get(messageId)
    if (!message) return false
    return message.isStreaming || (!message.isStopped && this.#isBusy(message))
  }

  /** Whether a message replies to a user message that is stored, and is not complete. */
  hasStored(userMessageId: string): boolean {
    const all = [...this.#messages.values()]
    return all.some((each) => each.isUserMessageStored && each.userMessageId === userMessageId)
  }

  /** Returns the message that made a call. Returns undefined if it is complete, or the call is unknown. */
  findByCall(toolCallId: string): LiveMessage | undefined {
    return this.#byCall.get(toolCallId)
  }

  /** Returns the message that made a call. */
  ofCall(toolCallId: string): LiveMessage {
    const message = this.findByCall(toolCallId)
    if (!message) throw new Error(`The call ${toolCallId} belongs to no message.`)
    return message
  }

  messageIdOf(toolCallId: string): string {
    return this.ofCall(toolCallId).messageId
  }

  addCalls(message: LiveMessage, toolCallIds: readonly string[], isUnstored: boolean): void {
    for (const id of toolCallIds) {
      this.#byCall.set(id, message)
      if (isUnstored) this.#unstoredCalls.add(id)
    }
  }

  /** Adds a call of an earlier live session that still waits. */
  adopt(messageId: string, toolCallId: string): void {
    const message =
      this.#messages.get(messageId) ?? new LiveMessage({ messageId, isContinued: true })
    this.#messages.set(messageId, message)
    this.#byCall.set(toolCallId, message)
  }

  /** Whether the chat does not hold a call. */
  isUnstored(toolCallId: string): boolean {
    return this.#unstoredCalls.has(toolCallId)
  }

  /** Whether the user had stopped the reply before the model made a call. */
  isUnwanted(toolCallId: string): boolean {
    return this.isUnstored(toolCallId) || this.ofCall(toolCallId).isStopped
  }

  /** Lets the message of a call stream again, because the decision or output that the call waited for has arrived. */
  resume(toolCallId: string): void {
    this.ofCall(toolCallId).allowStream()
  }

  setCallState(toolCallId: string, state: LiveCallState): void {
    const message = this.ofCall(toolCallId)
    message.setCallState(toolCallId, state)
    if (state === 'ended') this.#unstoredCalls.delete(toolCallId)
    if (state === 'waiting' || state === 'asking' || state === 'ended') this.closeIfDone(message)
  }

  /**
   * Keeps streams open while the responses of a request are recorded, one after the other: a call may wait again between two of them,
   * and the client reads one stream.
   */
  async keepOpen<Result>(record: () => Promise<Result>): Promise<Result> {
    this.#recording += 1
    try {
      return await record()
    } finally {
      this.#recording -= 1
      const kept = [...this.#keptOpen]
      if (this.#recording === 0) this.#keptOpen.clear()
      for (const message of kept) this.closeIfDone(message)
    }
  }

  /** Opens a turn that starts or continues a message. */
  open(
    message: LiveMessage,
    { background, resumes = false }: { background: boolean; resumes?: boolean },
  ): Promise<Turn> {
    this.#messages.set(message.messageId, message)
    const stream = message.start()
    const opened = this.#openTurn(message, stream, { background, resumes })
    message.turn = opened
    opened.then(
      (turn) => this.#onOpened(turn, message),
      (error) => this.#openLater(message, stream, error),
    )
    return opened
  }

  #openTurn(
    message: LiveMessage,
    stream: MessageStream,
    { background, resumes }: { readonly background: boolean; readonly resumes: boolean },
  ): Promise<Turn> {
    return this.#options.openTurn(message.messageId, {
      events: stream.events,
      leavesCalls: () => stream.hasRunningCalls,
      background,
      resumes,
      userMessageId: message.userMessageId,
      storePrompt: () => this.#options.storePrompt(message),
    })
  }

  #onOpened({ signal }: Turn, message: LiveMessage): void {
    signal.addEventListener('abort', () => this.#stop(message), { once: true })
  }

  #onOpenedLater(turn: Turn, message: LiveMessage): void {
    this.#onOpened(turn, message)
    this.#options.onTurn(turn, message)
  }

  /** LV1963: what the model says while the store is away is streamed, stored and reported when it is back. */
  #openLater(message: LiveMessage, stream: MessageStream, failure: unknown): void {
    if (!isOutage(failure)) return message.pause()
    const open = (): Promise<Turn> =>
      this.#openTurn(message, stream, { background: true, resumes: true })
    message.turn = repeatWhileAway(open, isOutage)
    message.turn.then(
      (turn) => this.#onOpenedLater(turn, message),
      () => message.pause(),
    )
  }

  /** Streams an event in its message. Opens a turn if the message has none. */
  stream(message: LiveMessage, event: Event): void {
    this.#openIfNeeded(message)
    message.push(event)
  }

  /** Opens a turn for a message that has output and no turn. Does nothing if the user stopped the message. */
  #openIfNeeded(message: LiveMessage): void {
    if (message.isStreaming || message.isStopped) return
    this.#pauseEach((other) => !this.#options.turnTaking.isReceived(other))
    const resumes = message.turn !== undefined || message.isContinued
    this.open(message, { background: true, resumes }).then(
      (turn) => this.#options.onTurn(turn, message),
      this.#options.onError,
    )
  }

  /** Pauses the messages that expect no reply, so that another one can stream. Their calls continue, and later turns stream the results. */
  pauseOthers(): void {
    this.#pauseEach((message) => !this.#options.turnTaking.isReplyExpected(message))
  }

  #pauseEach(isPaused: (message: LiveMessage) => boolean): void {
    for (const message of this.#messages.values()) if (isPaused(message)) message.pause()
  }

  /** Whether calls of a message run. */
  hasRunningCalls(messageId: string): boolean {
    return this.#messages.get(messageId)?.hasRunningCalls === true
  }

  resetIdleTimer(): void {
    clearTimeout(this.#idleTimer)
  }

  /** Ends the stream of a message that has no more output for now, and removes the message if it is complete. */
  closeIfDone(message: LiveMessage): void {
    this.resetIdleTimer()
    if (this.#recording > 0) this.#keptOpen.add(message)
    else if (message.isStreaming) this.#pauseIfDone(message)
    const isDone = !message.isStreaming && !message.hasWaitingCalls && !message.isWorking
    if (isDone && !this.#options.turnTaking.isReplyExpected(message)) this.#remove(message)
  }

  /** The messages that a failure of the session ends. One with an open call resumes when the call has ended. */
  get ending(): LiveMessage[] {
    return [...this.#messages.values()].filter(
      (message) => message.isStreaming && !message.hasWaitingCalls && !message.isWorking,
    )
  }

  /** The messages whose reply the model has not completed. One with an open call continues when the call has ended. */
  get unfinished(): LiveMessage[] {
    return this.ending.filter((message) => this.#options.turnTaking.isReplyExpected(message))
  }

  /** Ends the streams of all messages. */
  end(failure: unknown): void {
    this.resetIdleTimer()
    for (const message of this.#messages.values()) {
      if (failure === undefined) message.pause()
      else message.fail(failure)
    }
  }

  #isBusy(message: LiveMessage): boolean {
    if (message.isWorking) return true
    return this.#options.turnTaking.isReplyExpected(message) && !this.#isBlocked(message)
  }

  /** Whether the model's turn for a message is blocked by calls that wait for the user. */
  #isBlocked(message: LiveMessage): boolean {
    const { turnTaking } = this.#options
    return message.hasWaitingCalls && turnTaking.speaker === message && turnTaking.isBlocked
  }

  #pauseIfDone(message: LiveMessage): void {
    const { turnTaking } = this.#options
    // The model replies to another message first.
    if (!turnTaking.isReceived(message) && this.#isAnother(message, 'isReceived'))
      return message.pause()
    if (message.isWorking) return
    // LV1200: a person has to see the call before the model replies to anything.
    if (this.#isBlocked(message)) this.#pauseEach((other) => other !== message)
    // A held message does not keep the next one from streaming.
    if (message.held && message.hasWaitingCalls && !this.#isAnother(message, 'isReplyExpected'))
      return
    if (!turnTaking.isReplyExpected(message)) message.pause()
    else if (this.#isBlocked(message)) {
      // A call that has started meanwhile closes the stream when it waits or ends.
      this.#idleTimer = setTimeout(() => message.isWorking || message.pause(), IDLE_MS)
    }
  }

  #isAnother(message: LiveMessage, what: 'isReceived' | 'isReplyExpected'): boolean {
    const { turnTaking } = this.#options
    const others = [...this.#messages.values()].filter((other) => other !== message)
    return others.some((other) => turnTaking[what](other))
  }

  #stop(message: LiveMessage): void {
    message.stop()
    this.#options.onStop(message)
  }

  #remove(message: LiveMessage): void {
    this.#messages.delete(message.messageId)
    for (const [id, other] of this.#byCall) if (other === message) this.#byCall.delete(id)
  }
}
