import type { ChatTransport } from 'ai'

import { type Backoff, withDefaults, delayBefore } from '../../shared/backoff.ts'
import type {
  AdkChunkStream,
  AdkUIMessage,
  ReconnectOptions,
  SendOptions,
} from '../adk-ui-message.ts'
import { type LoadedChat, type LoadOptions, AdkApi, chatPath } from '../api/adk-api.ts'
import { type Http, type HttpOptions, createHttp, readSse } from '../api/http.ts'
import { type Identified, FirstSenders } from '../connection/principal-tag.ts'
import { TurnProgress } from '../connection/turn-progress.ts'
import { type ChatPositions, MESSAGE_HEADER } from '../../protocol/sse.ts'
import type { MessageView } from '../connection/chat-messages.ts'
import { ResponseStates, selectMessages } from '../connection/response-states.ts'
import {
  type ChatObserver,
  type OpenStream,
  type ResponseChannel,
  type SentDecision,
  type SentOutput,
  type StreamSource,
  createChatObservers,
  DECISION_CANCELLED,
  type AgentOption,
  nameAgent,
  emptyStream,
  toChunkStream,
} from '../connection/transport.ts'
import {
  type Connected,
  type ConnectionListener,
  type ConnectionState,
  createSharedConnection,
  waitForNextAttempt,
} from '../connection/connection-state.ts'
import { type WireObserver, type WireTap, createTap } from '../connection/wire-events.ts'
import type { Chunk } from '../../protocol/chunk.ts'
import { AdkError, disconnected, isTemporary } from '../adk-error.ts'

/** Options of `sseTransport`. */
export interface SseTransportOptions extends HttpOptions {
  /**
   * The agent of new chats, if the bridge has several. A function is called for each chat. A chat that has another agent rejects messages
   * with `other-agent`. Default: the bridge chooses. `body.agent` of a message overrides it.
   */
  readonly agent?: AgentOption
  /** The delays before an interrupted stream is requested again. Applies to attached chats. */
  readonly backoff?: Backoff
  /** Called with everything that is sent and received, for a recorder or an inspector. */
  readonly observe?: WireObserver
}

/** Creates a chat transport over HTTP, for `useChat` of the AI SDK 6 and 7. */
export function sseTransport(options: SseTransportOptions): SseTransport {
  return new SseTransport(options)
}

/** The transport of `sseTransport()`. Each stream is the response to an HTTP request. */
export class SseTransport
  implements ChatTransport<AdkUIMessage>, ResponseChannel, OpenStream, Connected, Identified
{
  /** A resumed stream replays its message from the start. */
  readonly resumeStreamIsReplay = true
  /** @internal For `attachChat`. */
  readonly responses = new ResponseStates()
  /** The other requests to the same bridge. */
  readonly api: AdkApi
  readonly #http: Http
  readonly #agent: AgentOption | undefined
  readonly #observe: WireObserver | undefined
  readonly #observers = createChatObservers()
  readonly #shared = createSharedConnection()
  readonly #backoff: Required<Backoff>
  readonly #senders = new FirstSenders()
  /** The newest stream of each chat. */
  readonly #newest = new Map<string, SseStream>()
  /**
   * The streams whose stops the server has not confirmed. A stop that does not know its message is given up when the chat sends another
   * request, and one that names a message when a request continues it.
   */
  readonly #stopping = new Map<SseStream, AbortController>()

  constructor({ agent, backoff, observe, ...options }: SseTransportOptions) {
    this.#agent = agent
    this.#http = createHttp(options)
    const isLost = (): boolean => this.connection.state === 'lost'
    this.api = new AdkApi(this.#http, { backoff, isLost })
    this.#observe = observe
    this.#backoff = withDefaults(backoff)
  }

  get connection(): ConnectionState {
    return this.#shared.status.current
  }

  /** Returns a function that unsubscribes. */
  onConnection(listener: ConnectionListener): () => void {
    return this.#shared.status.subscribe(listener)
  }

  /** The tag of the person who is signed in, as far as responses of the server have shown it. It names nobody. */
  get principal(): string | undefined {
    return this.#http.principal.current
  }

  /** Calls the listener when `principal` changes. Returns a function that unsubscribes. */
  onPrincipal(listener: () => void): () => void {
    return this.#http.principal.subscribe(listener)
  }

  async sendMessages(options: SendOptions): Promise<AdkChunkStream> {
    const { chatId, trigger, messageId, abortSignal: signal, headers, body } = options
    const { messages, responseIds, decisions, outputIds, shown } = selectMessages(
      { messages: options.messages, messageId, trigger },
      this.responses.all,
    )
    const named = nameAgent(this.#agent, chatId)
    const supplements = this.responses.supplementsOf(decisions)
    this.responses.mark(responseIds, 'sent')
    const request = { chatId, trigger, messageId, message: messages[0] }
    const tap = this.#observe && createTap(this.#observe, request)
    const sent = messages.at(-1)?.id
    const hasResponses = responseIds.length > 0
    const stream = this.#open(chatId, {
      source: 'requested',
      joins: hasResponses,
      tap,
      signal,
      messageId: sent,
    })
    const approvalIds = messages.flatMap(listDecided)
    // A chat that is not attached gets the error, and shows it. An attached one sends outputs again by itself.
    const isKept = stream.chat !== undefined && approvalIds.length > 0
    // When the connection is back, another person may have signed in.
    const writer = this.#senders.ofMessage(messages.at(-1), this.principal)
    const sender = this.#senders.ofOutputs(outputIds, this.principal)
    const decidedAs = stream.chat && hasResponses ? sender : writer
    try {
      const send = () => {
        this.#replaceStops(stream)
        return this.#http.send('/stream', {
          method: 'POST',
          body: {
            ...named,
            ...body,
            id: chatId,
            trigger,
            messageId,
            messages,
            positions: true,
            ...shown,
            ...supplements,
          },
          signal: stream.signal,
          headers,
          decidedAs,
        })
      }
      const response = await (isKept
        ? this.api.outbox.keep({
            approvalIds,
            signal: stream.signal,
            send,
            report: (state) => this.#shared.report(stream, state),
          })
        : send())
      this.responses.mark(responseIds, 'accepted')
      return this.#read(stream, response)
    } catch (error) {
      stream.end(error)
      if (hasResponses) this.#refuse(stream, responseIds, error)
      // The person took the decision back: that is no error, and nothing follows.
      if (error === DECISION_CANCELLED) return emptyStream()
      throw error
    }
  }

  /**
   * Marks responses as refused and says why at the same moment: a page that renders in between would show a decision as confirmed (RE162).
   * Those of a stopped request may have arrived: their outcome is known when the turn has stopped.
   */
  #refuse(
    { chatId, chat, stopped }: SseStream,
    responseIds: readonly string[],
    error: unknown,
  ): void {
    const refuse = (): void => {
      this.responses.mark(responseIds, 'refused')
      this.#observers.find(chatId, chat)?.onResponsesRefused(responseIds, error)
    }
    if (stopped.current && error !== DECISION_CANCELLED) void stopped.current.then(refuse)
    else refuse()
  }

  async reconnectToStream(options: ReconnectOptions): Promise<AdkChunkStream | null> {
    const { chatId, headers, abortSignal } = options
    // A reply that the person has stopped is not resumed before the server has confirmed the stop. `onStopped` follows.
    if (this.#observers.find(chatId) && this.#stoppingIn(chatId).length > 0) return null
    const tap = this.#observe && createTap(this.#observe, { chatId, trigger: 'resume' })
    const opening = { source: 'resumed', joins: true, tap, signal: abortSignal } as const
    const stream = this.#open(chatId, opening)
    try {
      const { signal } = stream
      const response = await this.#http.send(resumePath(chatId), { headers, signal })
      stream.messageId = readMessageId(response)
      if (response.status !== 204) return this.#read(stream, response)
      stream.end()
      return null
    } catch (error) {
      stream.end(error)
      throw error
    }
  }

  /** Decides an approval outside the chat's stream, when the server can be reached. Resolves with the new state of the approval. */
  decide({ approvalId, ...decision }: Omit<SentDecision, 'chatId'>): Promise<string> {
    return this.api.outbox.send(approvalId, decision)
  }

  /** Takes back a decision that waits for a connection. Returns false if it may have arrived. */
  cancelDecision(approvalId: string): boolean {
    return this.api.cancelDecision(approvalId)
  }

  /** Loads the stored messages of a chat. */
  async loadMessages(chatId: string): Promise<AdkUIMessage[]> {
    return (await this.loadChat(chatId)).messages
  }

  /** Loads the stored messages of a chat, or those after a position, and whether a turn is running, which they leave out. */
  loadChat(chatId: string, options?: LoadOptions): Promise<LoadedChat> {
    return this.api.loadChat(chatId, options)
  }

  /** @internal For `attachChat`. */
  isSending(chatId: string): boolean {
    const newest = this.#newest.get(chatId)
    return newest?.source === 'requested' && !newest.signal.aborted
  }

  /** Sends the output of a browser tool outside the chat's stream. Resolves when the server has it. */
  async toolOutput({ chatId, toolCallId, ...result }: SentOutput): Promise<void> {
    const path = chatPath(chatId, 'outputs', encodeURIComponent(toolCallId))
    const decidedAs = this.#senders.ofOutputs([toolCallId], this.principal)
    await this.#http.send(path, { method: 'POST', body: result, decidedAs, isRepeatable: true })
  }

  /**
   * The stream of a turn that the chat has joined may be that of a live session, which stays open while it waits for a response. The
   * stream of a new message ends then.
   */
  openStream(chatId: string): OpenStream | undefined {
    const stream = this.#newest.get(chatId)
    return stream?.joins === true && !stream.signal.aborted ? this : undefined
  }

  /** Adds a chunk to the stream that a chat reads. */
  pushChunk(chatId: string, chunk: Chunk): void {
    this.#newest.get(chatId)?.push?.(chunk)
  }

  observeChat(chatId: string, observer: ChatObserver): () => void {
    return this.#observers.add(chatId, observer)
  }

  /** The feed of a chat counts as part of the connection: without it, the page does not follow the server. */
  onFeed(feed: object, state: ConnectionState | undefined): void {
    this.#shared.report(feed, state)
  }

  #open(chatId: string, { source, joins, tap, signal, messageId }: OpenOptions): SseStream {
    const closing = new AbortController()
    const stream: SseStream = {
      chatId,
      chat: this.#observers.find(chatId)?.chat,
      source,
      joins,
      tap,
      signal: closing.signal,
      isSent: source === 'resumed',
      messageId,
      stopped: {},
      close: () => closing.abort(),
      end: (error) => {
        tap?.end(error)
        this.#shared.report(stream, undefined)
        if (this.#newest.get(chatId) === stream) this.#newest.delete(chatId)
      },
    }
    this.#newest.set(chatId, stream)
    this.#shared.report(stream, { state: 'connecting' })
    signal?.addEventListener('abort', () => this.#stop(stream), { once: true })
    return stream
  }

  #read(stream: SseStream, { body }: Response): AdkChunkStream {
    if (!body) throw disconnected('the response has no body')
    const reading: Reading = { at: new TurnProgress(), attempts: 0 }
    return toChunkStream(this.#chunks(stream, body, reading), {
      observer: () => this.#observers.find(stream.chatId, stream.chat),
      onCancel: () => stream.close(),
      source: stream.source,
      readEnd: () => ({ turn: reading.at.turn, positions: reading.positions }),
      onOpen: (push) => {
        stream.push = push
      },
    })
  }

  /** Closing the connection only removes a reader from the turn. `stop()` must end the turn on the server. */
  #stop(stream: SseStream): void {
    const { chatId, chat, source } = stream
    stream.close()
    // A second `resumeStream()` aborts the first one and sends its request right after. That is not a stop.
    queueMicrotask(() => {
      // CL800: its decision is open again.
      if (!stream.isSent) return
      const newest = this.#newest.get(chatId)
      const isReplaced = newest?.source === 'resumed' && newest !== stream
      if (source === 'resumed' && isReplaced) return
      const stopped = this.#stopTurn(stream)
      stream.stopped.current = stopped
      void stopped.then(() => this.#observers.find(chatId, chat)?.onStopped())
    })
  }

  /** A request is sent: stops that wait must not stop its turn. */
  #replaceStops(stream: SseStream): void {
    stream.isSent = true
    for (const [{ messageId }, sending] of this.#stoppingIn(stream.chatId))
      if (messageId === undefined || messageId === stream.messageId) sending.abort()
  }

  #stoppingIn(chatId: string): [SseStream, AbortController][] {
    return [...this.#stopping].filter(([stopped]) => stopped.chatId === chatId)
  }

  /** Stops the turn of a stream as soon as the server can be reached. A page keeps trying if the stop names its message. */
  async #stopTurn(stream: SseStream): Promise<void> {
    const { chatId, chat } = stream
    const backoff = this.#backoff
    const sending = new AbortController()
    this.#stopping.set(stream, sending)
    for (let attempt = 0; !sending.signal.aborted; attempt += 1) {
      try {
        await this.#sendStop(stream, sending.signal)
        break
      } catch (error) {
        const isKept = stream.messageId !== undefined && this.#observers.find(chatId, chat)
        if (!isTemporary(error) || (attempt >= backoff.attempts && !isKept)) break
        await waitForNextAttempt(delayBefore(attempt, backoff), sending.signal)
      }
    }
    // Closes the stream that was requested to find the message.
    sending.abort()
    this.#stopping.delete(stream)
  }

  /** A stop names its message: one that arrives late must not stop the reply to a later message. */
  async #sendStop(stream: SseStream, signal: AbortSignal): Promise<void> {
    const { chatId } = stream
    if (stream.messageId === undefined) {
      const running = await this.#http.send(resumePath(chatId), { signal })
      if (running.status === 204) return
      stream.messageId = readMessageId(running)
    }
    await this.api.stopChat(chatId, stream.messageId)
  }

  async *#chunks(
    stream: SseStream,
    opened: ReadableStream<Uint8Array>,
    reading: Reading,
  ): AsyncGenerator<Chunk, void> {
    try {
      let body: ReadableStream<Uint8Array> | undefined = opened
      while (body) {
        this.#shared.report(stream, { state: 'open' })
        try {
          reading.positions = yield* this.#chunksOf(stream, body, reading)
          return
        } catch (error) {
          body = await this.#continue(stream, reading, error)
        }
      }
    } catch (error) {
      stream.end(error)
      throw error
    } finally {
      stream.end()
    }
  }

  async *#chunksOf(
    stream: SseStream,
    body: ReadableStream<Uint8Array>,
    reading: Reading,
  ): AsyncGenerator<Chunk, ChatPositions | undefined> {
    // The rest of a stream was requested with another signal.
    const events = readSse(body, stream.signal)
    for (;;) {
      const next = await events.next()
      if (next.done) return next.value
      const { chunk, entry } = next.value
      reading.attempts = 0
      reading.at.add(chunk, entry)
      if (chunk.type === 'start') stream.messageId = reading.messageId = chunk.messageId
      stream.tap?.chunk(chunk)
      yield chunk
    }
  }

  /**
   * Requests the rest of a stream that was cut off. Returns undefined if its turn has ended and the chat shows the stored message. Throws
   * the error if the chat can get no more of it.
   */
  async #continue(
    stream: SseStream,
    reading: Reading,
    error: unknown,
  ): Promise<ReadableStream<Uint8Array> | undefined> {
    const { chatId, chat, signal } = stream
    const backoff = this.#backoff
    while (reading.attempts < backoff.attempts) {
      // A chat that is not attached gets the error, and can resume.
      const observer = signal.aborted ? undefined : this.#observers.find(chatId, chat)
      if (!observer) throw error
      const delay = reading.attempts === 0 ? 0 : delayBefore(reading.attempts - 1, backoff)
      reading.attempts += 1
      this.#shared.report(stream, {
        state: 'lost',
        attempt: reading.attempts,
        retryAt: Date.now() + delay,
      })
      await waitForNextAttempt(delay, signal)
      try {
        const response = await this.#http.send(resumePath(chatId, reading.at.current), { signal })
        if (response.status !== 204 && response.body) return response.body
        const known = await observer.reload()
        if (known?.includes(reading.messageId ?? '') === true) return undefined
        throw error
      } catch (failure) {
        const isRejected = failure instanceof AdkError && failure.code !== 'unavailable'
        if (failure === error || isRejected || signal.aborted) throw error
      }
    }
    throw error
  }
}

/** Returns the id of a resumed stream's message, which may have no chunk yet. */
function readMessageId({ headers }: Response): string | undefined {
  const id = headers.get(MESSAGE_HEADER)
  return id === null ? undefined : decodeURIComponent(id)
}

/** What was read of the turn of a stream. */
interface Reading {
  readonly at: TurnProgress
  /** The attempts to continue it since its last chunk. */
  attempts: number
  messageId?: string
  positions?: ChatPositions | undefined
}

/** One stream over HTTP. */
interface SseStream {
  readonly chatId: string
  /** The `Chat` that reads the stream, if it is attached. */
  readonly chat: object | undefined
  readonly source: StreamSource
  /** Whether the turn may have been started by another client. */
  readonly joins: boolean
  /** Aborts the HTTP requests of the stream. */
  readonly signal: AbortSignal
  /** Whether the server may have the request. A decision may wait for the connection. */
  isSent: boolean
  /** The message that the turn writes, or that it replies to. Undefined until a resumed stream is found. */
  messageId: string | undefined
  /** Resolves when the server has stopped the turn, or cannot do it. Undefined if the person did not stop it. */
  readonly stopped: { current?: Promise<unknown> }
  /** Adds a chunk to the stream. Undefined before the response. */
  push?: (chunk: Chunk) => void
  readonly close: () => void
  readonly end: (error?: unknown) => void
  readonly tap: WireTap | undefined
}

interface OpenOptions {
  readonly source: StreamSource
  readonly joins: boolean
  readonly tap: WireTap | undefined
  /** Aborted by `stop()`, and by a second `resumeStream()`. */
  readonly signal: AbortSignal | undefined
  /** The message that is sent. */
  readonly messageId?: string | undefined
}

/** Returns the ids of the approvals that a message decides. */
function listDecided({ parts }: MessageView): string[] {
  return parts.flatMap(({ state, approval }) =>
    state === 'approval-responded' && approval ? approval.id : [],
  )
}

/** Returns the path of the running turn, or of its rest after a position. */
function resumePath(chatId: string, after?: string): string {
  const rest = after === undefined ? 'positions=true' : `after=${encodeURIComponent(after)}`
  return `/stream/${encodeURIComponent(chatId)}/stream?${rest}`
}
