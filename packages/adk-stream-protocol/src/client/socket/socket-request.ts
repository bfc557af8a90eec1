import { type Chunk, readQuestion } from '../../protocol/chunk.ts'
import type { ClientFrameOf } from '../../protocol/client-frame.ts'
import type { ServerFrame } from '../../protocol/server-frame.ts'
import { AsyncQueue, defer } from '../../shared/async.ts'
import { TurnProgress } from '../connection/turn-progress.ts'
import type { ChatPositions } from '../../protocol/sse.ts'
import { newId, type WireTap, type WireRequest } from '../connection/wire-events.ts'
import type { AdkChunkStream } from '../adk-ui-message.ts'
import type { MessageView } from '../connection/chat-messages.ts'
import { toChunkStream, type ChatObserver } from '../connection/transport.ts'

/** A text frame of the server. */
export type IncomingFrame =
  | ServerFrame
  | {
      readonly type: 'chunk'
      readonly requestId: string
      readonly sequence: number
      /** The position of the chunk in its turn, see `TurnProgress`. */
      readonly position?: string
      readonly chunk: Chunk
    }

export type IncomingFrameOf<Type extends IncomingFrame['type']> = Extract<
  IncomingFrame,
  { readonly type: Type }
>

export type RequestFrame = ClientFrameOf<'send'> | ClientFrameOf<'resume'>

/**
 * `unsent`. `sent`: no reply yet. `reading`: the server streams the reply. `resuming`: the connection was lost during the reply, and the
 * server was asked for the rest of it. `checking`: it was lost before the reply, and the server was asked whether a turn is running.
 * `stopping`: stopped here, and the server has not confirmed it. `finding`: stopped here, and the server was asked whether a turn is running. `ended`.
 */
type RequestState =
  | 'unsent'
  | 'sent'
  | 'reading'
  | 'resuming'
  | 'checking'
  | 'stopping'
  | 'finding'
  | 'ended'

const CLOSED: ReadonlySet<RequestState> = new Set(['stopping', 'finding', 'ended'])

interface RequestOptions {
  /** The ids of the responses that the request sends. */
  readonly responseIds: readonly string[]
  /** The `Chat` that reads the stream, if it is attached. */
  readonly chat: object | undefined
  readonly observer: () => ChatObserver | undefined
  readonly onCancel: (request: SocketRequest) => void
  readonly tap: WireTap | undefined
}

let created = 0

/** A stream that a chat requested. */
export class SocketRequest {
  /** The id on the wire. A request that is sent again gets another one. */
  id = newId()
  /** Orders requests by their creation. */
  readonly createdSeq = (created += 1)
  readonly chatId: string
  readonly frame: RequestFrame
  readonly chat: object | undefined
  readonly responseIds: readonly string[]
  state: RequestState = 'unsent'
  /** Whether the stream is of a turn that was running after a reconnect. It may be another one: the server may not have the request. */
  isUnconfirmed = false
  /** How often a server was not available for the responses of the request. */
  refusals = 0
  messageId: string | undefined
  signal: AbortSignal | undefined
  /** The requests that this one replaces, while the server still streams to them. */
  replaced: SocketRequest[] = []
  readonly stream: AdkChunkStream
  readonly tap: WireTap | undefined
  readonly #opened = defer<AdkChunkStream | undefined>()
  readonly #chunks = new AsyncQueue<Chunk>()
  /** Receives the chunks after the chat's reader was detached. */
  #detached: AsyncQueue<Chunk> | undefined
  /** Calls that wait for a decision or for an output of the page. */
  readonly #waitingCalls = new Set<string>()
  readonly #position = new TurnProgress()
  #positions: ChatPositions | undefined
  #sequence = 0

  constructor(frame: RequestFrame, options: RequestOptions) {
    this.chatId = frame.id
    this.chat = options.chat
    this.frame = frame
    this.responseIds = options.responseIds
    this.tap = options.tap
    this.stream = toChunkStream(this.#chunks, {
      observer: options.observer,
      onCancel: () => options.onCancel(this),
      source: frame.type === 'send' ? 'requested' : 'resumed',
      readEnd: () => ({ turn: this.turn, positions: this.#positions }),
    })
    this.#opened.promise.catch(() => undefined)
  }

  /** Resolves when the server has accepted the request: with the stream, or with undefined if there is nothing to resume. */
  get opened(): Promise<AdkChunkStream | undefined> {
    return this.#opened.promise
  }

  /** The id of the turn that is read. */
  get turn(): string | undefined {
    return this.#position.turn
  }

  /** Returns the frame to send, under a new id. `resume` requests the rest of the turn. */
  nextFrame(type: 'original' | 'resume'): RequestFrame {
    this.id = newId()
    this.#sequence = 0
    const { frame, id: requestId, chatId: id } = this
    if (type === 'original') return { ...frame, requestId }
    const after = this.#position.current
    return { type, requestId, id, ...(after === undefined ? { positions: true } : { after }) }
  }

  /** The message that a stop names: the one that is read, or before its first chunk the one that was sent. */
  get stoppedMessageId(): string | undefined {
    return this.messageId ?? sentMessage(this.frame)?.id
  }

  start(): void {
    this.isUnconfirmed ||= this.state === 'checking'
    this.state = 'reading'
    this.#opened.resolve(this.stream)
  }

  /** Takes a chunk. Returns false if one before it is missing. */
  take({ sequence, chunk, position }: IncomingFrameOf<'chunk'>): boolean {
    if (sequence < this.#sequence) return true
    if (sequence > this.#sequence) return false
    this.#sequence += 1
    this.#position.add(chunk, position)
    if (chunk.type === 'start') this.messageId = chunk.messageId
    this.tap?.chunk(chunk)
    this.#noteWaiting(chunk)
    const queue = this.#detached ?? this.#chunks
    queue.push(chunk)
    return true
  }

  /** Adds a chunk that the server did not send. */
  pushChunk(chunk: Chunk): void {
    this.#chunks.push(chunk)
  }

  /** Ends the stream for its chat. Returns the chunks that follow. */
  detachReader(): AsyncQueue<Chunk> {
    this.#chunks.close()
    this.#detached ??= new AsyncQueue<Chunk>()
    return this.#detached
  }

  /** Whether the turn waits for a person or for this page. */
  get isWaiting(): boolean {
    return this.#waitingCalls.size > 0
  }

  /** Whether the request has the same effect if the server gets it twice. A message is recognised by its id (TU901). */
  get isRepeatable(): boolean {
    const { frame, responseIds } = this
    if (frame.type === 'resume' || responseIds.length > 0) return true
    return frame.trigger !== 'regenerate-message' && !frame.messageId
  }

  /** Whether a chat reads the stream. */
  get isRead(): boolean {
    return this.isOpen && !this.#detached
  }

  get isOpen(): boolean {
    return !CLOSED.has(this.state)
  }

  end(positions?: ChatPositions): void {
    this.#positions = positions
    this.state = 'ended'
    this.tap?.end()
    this.#opened.resolve(undefined)
    this.#chunks.close()
    this.#detached?.close()
  }

  fail(error: unknown): void {
    this.state = 'ended'
    this.tap?.end(error)
    this.#opened.reject(error)
    this.#chunks.fail(error)
    this.#detached?.close()
  }

  /** Whether stored messages with these ids show that the server has handled the request. */
  isHandled(storedIds: readonly string[]): boolean {
    const { state, frame, messageId, isUnconfirmed } = this
    if (state === 'resuming' && !isUnconfirmed)
      return messageId !== undefined && storedIds.includes(messageId)
    if (frame.type === 'resume') return true
    const index = storedIds.indexOf(sentMessage(frame)?.id ?? '')
    // A user message is stored.
    if (frame.trigger !== 'regenerate-message') return index >= 0
    // A regenerated message is removed. Without one, the page shows no reply to its last message.
    if (frame.messageId) return !storedIds.includes(frame.messageId)
    return index >= 0 && index < storedIds.length - 1
  }

  /** The new version of a message that the request replaces, if it is not known whether the server has received it. */
  get unconfirmedEdit(): MessageView | undefined {
    const { state, frame, isUnconfirmed } = this
    if (frame.type === 'resume' || frame.trigger === 'regenerate-message' || !frame.messageId)
      return undefined
    const sent = sentMessage(frame)
    return sent?.role === 'user' && (state === 'checking' || isUnconfirmed) ? sent : undefined
  }

  #noteWaiting(chunk: Chunk): void {
    const question = readQuestion(chunk)
    if (question) this.#waitingCalls.add(question.toolCallId)
    else if (chunk.type === 'tool-approval-request') this.#waitingCalls.add(chunk.toolCallId)
    else if (chunk.type === 'data-browser-call') this.#waitingCalls.add(chunk.data.toolCallId)
    else if (chunk.type === 'data-approval' && chunk.data.state !== 'requested')
      this.#waitingCalls.delete(chunk.data.toolCallId)
    else if (
      chunk.type === 'tool-output-available' ||
      chunk.type === 'tool-output-error' ||
      chunk.type === 'tool-output-denied'
    )
      this.#waitingCalls.delete(chunk.toolCallId)
  }
}

/** Describes a request for a `WireObserver`. */
export function describeRequest(frame: RequestFrame): Omit<WireRequest, 'chatId'> {
  if (frame.type === 'resume') return { trigger: 'resume' }
  const { trigger = 'submit-message', messageId } = frame
  return { trigger, message: sentMessage(frame), messageId: messageId ?? undefined }
}

function sentMessage(frame: RequestFrame): MessageView | undefined {
  // The transport creates the frame from messages of the chat.
  return frame.type === 'send' ? (frame.messages.at(-1) as MessageView | undefined) : undefined
}
