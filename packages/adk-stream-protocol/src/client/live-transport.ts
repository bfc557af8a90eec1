import type { ChatTransport } from 'ai'

import type { Chunk } from '../protocol/chunk.ts'
import type { ClientFrame } from '../protocol/client-frame.ts'
import type { ErrorCode } from '../protocol/errors.ts'
import { Acknowledgements } from './acknowledgements.ts'
import { AdkError } from './adk-error.ts'
import type {
  AdkChunkStream,
  AdkUIMessage,
  ReconnectOptions,
  SendOptions,
} from './adk-ui-message.ts'
import { Answers, selectMessages } from './answers.ts'
import type { AnswerChannel, Beside, DecisionSent, OutputSent } from './answer-channel.ts'
import type { ChatKeeper, ServerTurn } from './chat-keeper.ts'
import type { AudioMode, LiveListener } from './live-events.ts'
import { LiveEvents } from './live-events.ts'
import { LiveRequests } from './live-requests.ts'
import { Keepers } from './keepers.ts'
import { newId } from './new-id.ts'
import { Pings } from './pings.ts'
import type { IncomingFrame, IncomingFrameOf } from './server-frames.ts'
import { readServerFrame } from './server-frames.ts'
import type { Backoff } from './backoff.ts'
import { withDefaults } from './backoff.ts'
import type { Connected, ConnectionListener, ConnectionState } from './connection-state.ts'
import type { SocketClass } from './socket-link.ts'
import { SocketLink } from './socket-link.ts'
import type { WireObserver } from './wire-events.ts'

/** Where the socket is, and how it is used. */
export interface LiveTransportOptions {
  /** The address of the socket; a function is asked for each one, for addresses with a token. */
  readonly url: string | (() => string | Promise<string>)
  /** Default: the one of the browser. In Node, that of `ws`. */
  readonly webSocket?: SocketClass
  /** Whether the stream of a chat that is attached stays open while it waits for a person. Default true. */
  readonly hold?: boolean
  readonly backoff?: Backoff
  /** Sees all that passes, for a record or an inspector. */
  readonly observe?: WireObserver
  /** A frame of ours that the server did not take, and that nobody waits for. */
  readonly onRefused?: (refusal: { frame: string; code: ErrorCode; message: string }) => void
}

/** The transport of a chat over one WebSocket, for `useChat` of the AI SDK 6 and 7. */
export function liveTransport(options: LiveTransportOptions): LiveTransport {
  return new LiveTransport(options)
}

/** The transport of `liveTransport()`: answers of all chats over one socket, and what a live conversation needs beside them. */
export class LiveTransport
  implements ChatTransport<AdkUIMessage>, AnswerChannel, Beside, Connected
{
  /** A stream that is resumed tells its message from the start. */
  readonly resumeStreamIsReplay = true
  readonly answers = new Answers()
  readonly #options: LiveTransportOptions
  readonly #keepers = new Keepers()
  readonly #link: SocketLink
  readonly #requests: LiveRequests
  readonly #acknowledgements: Acknowledgements
  readonly #events: LiveEvents
  readonly #pings = new Pings()
  /** Frames that need no answer, until there is a socket. */
  #unsent: ClientFrame[] = []

  constructor(options: LiveTransportOptions) {
    this.#options = options
    const { observe } = options
    const keeperOf = (chatId: string): ChatKeeper | undefined => this.#keepers.of(chatId)
    const link = (): SocketLink => this.#link
    this.#requests = new LiveRequests({ link, keeperOf, observe, answers: this.answers })
    this.#acknowledgements = new Acknowledgements(link)
    this.#events = new LiveEvents({ keeperOf, observe })
    this.#link = new SocketLink({
      url: options.url,
      webSocket: () => options.webSocket ?? browserSocket(),
      backoff: withDefaults(options.backoff),
      onFrame: (text) => this.#read(text),
      onSend: (frame) => observe?.({ type: 'frame', direction: 'out', frame }),
      onAudio: (bytes) => {
        observe?.({ type: 'sound', direction: 'in', bytes: bytes.byteLength })
        this.#events.onAudio(bytes)
      },
      onUp: () => this.#up(),
      onDown: () => this.#down(),
      onGivenUp: (error) => this.#giveUp(error),
    })
  }

  get connection(): ConnectionState {
    return this.#link.status.current
  }

  onConnection(listener: ConnectionListener): () => void {
    return this.#link.status.subscribe(listener)
  }

  async sendMessages(options: SendOptions): Promise<AdkChunkStream> {
    const { chatId: id, trigger, messageId, abortSignal, body } = options
    const { messages, answered } = selectMessages({ ...options, messageId, trigger }, this.answers)
    const edits = this.answers.editsOf(answered)
    const frame = {
      type: 'send' as const,
      requestId: '',
      id,
      trigger,
      messageId,
      messages,
      body: {
        ...body,
        // A chat that nobody looks after answers when its stream has ended, and not before.
        hold: (this.#options.hold ?? true) && this.#keepers.of(id) !== undefined,
        ...(Object.keys(edits).length > 0 && { edits }),
      },
    }
    const stream = await this.#requests.ask(frame, answered, abortSignal)
    return stream ?? emptyStream()
  }

  async reconnectToStream(options: ReconnectOptions): Promise<AdkChunkStream | null> {
    const { chatId: id, abortSignal: signal } = options
    const revived = this.#requests.takeRevived(id, signal)
    if (revived) return revived
    const stream = await this.#requests.ask({ type: 'resume', requestId: '', id }, [], signal)
    return stream ?? null
  }

  /** Tells a decision at once; resolves with the state that the approval is in then. */
  decide({ chatId: id, ...decision }: DecisionSent): Promise<string> {
    const decisionId = newId()
    return this.#acknowledgements.send({ type: 'decide', decisionId, id, ...decision })
  }

  /** Gives what a tool gave that ran here; resolves when the server has it. */
  async toolOutput({ chatId: id, ...output }: OutputSent): Promise<void> {
    const outputId = newId()
    await this.#acknowledgements.send({ type: 'tool-output', outputId, id, ...output })
  }

  beside(chatId: string): Beside | undefined {
    return this.#requests.ofChat(chatId) ? this : undefined
  }

  /** Ends the stream that a chat reads, to make room for another; what still comes of it is given back. */
  divert(chatId: string): ServerTurn | undefined {
    const request = this.#requests.ofChat(chatId)
    if (request?.messageId === undefined) return undefined
    return { messageId: request.messageId, continues: true, chunks: request.divert() }
  }

  /** Gives the chat a chunk within the stream that it reads. */
  inject(chatId: string, chunk: Chunk): void {
    this.#requests.ofChat(chatId)?.inject(chunk)
  }

  keep(chatId: string, keeper: ChatKeeper): () => void {
    return this.#keepers.keep(chatId, keeper)
  }

  /** Tells of all that happens in a live chat. Give back ends it. */
  watch(
    chatId: string,
    listener: LiveListener = () => undefined,
    { audio = 'none' }: { audio?: AudioMode } = {},
  ): () => void {
    const leave = this.#events.watch(chatId, audio, listener)
    this.#link.open()
    // A socket that comes up later tells the server of all that is watched.
    this.#tellWatched(chatId)
    return () => {
      const before = this.#events.audioOf(chatId)
      const { speaking } = this.#events
      leave()
      if (this.#events.audioOf(chatId) !== before) this.#tellWatched(chatId)
      const now = this.#events.speaking
      if (now !== undefined && now !== speaking) this.#tellWatched(now)
    }
  }

  /** Says something while an answer is being given. */
  sendText(chatId: string, text: string, messageId: string = newId()): void {
    const parts = [{ type: 'text' as const, text }]
    const message = { id: messageId, role: 'user' as const, parts }
    this.#options.observe?.({ type: 'user-message', chatId, message })
    this.#keepers.of(chatId)?.onUserMessage(message, 'written')
    this.#say({ type: 'text', id: chatId, messageId, text })
  }

  /** Lets the model hear: 16 bit PCM at 16 kHz, of the chat that is watched with binary audio. Sound without a socket is lost. */
  sendAudio(bytes: Uint8Array<ArrayBuffer>): boolean {
    this.#link.open()
    const isSent = this.#link.sendBytes(bytes)
    if (isSent)
      this.#options.observe?.({ type: 'sound', direction: 'out', bytes: bytes.byteLength })
    return isSent
  }

  endAudio(chatId: string): void {
    this.#say({ type: 'audio-end', id: chatId })
  }

  /** Shows the model a picture, as base64. */
  sendImage(chatId: string, data: string, mimeType: string): void {
    this.#say({ type: 'image', id: chatId, data, mimeType })
  }

  /** Marks where the person begins and ends to speak. */
  markActivity(chatId: string, state: 'start' | 'end'): void {
    this.#say({ type: 'activity', id: chatId, state })
  }

  /** Hears no more of what the model is saying. */
  interrupt(chatId: string): void {
    this.#say({ type: 'interrupt', id: chatId })
  }

  /** Resolves when the server has read all that was sent before; tells how many ms that took. */
  ping(): Promise<number> {
    return this.#pings.send((nonce) => {
      this.#link.open()
      this.#link.send({ type: 'ping', nonce })
    })
  }

  close(): void {
    this.#link.close()
  }

  #say(frame: ClientFrame): void {
    this.#link.open()
    if (!this.#link.send(frame)) this.#unsent.push(frame)
  }

  #tellWatched(chatId: string): void {
    const audio = this.#events.audioOf(chatId)
    if (audio === undefined) this.#link.send({ type: 'unwatch', id: chatId })
    else this.#link.send({ type: 'watch', id: chatId, audio })
  }

  #up(): void {
    for (const { id, audio } of this.#events.watched())
      this.#link.send({ type: 'watch', id, audio })
    // A chat that reads an answer of its own asks for that itself.
    const isWanted = (id: string): boolean =>
      this.#events.audioOf(id) !== undefined && !this.#requests.ofChat(id)
    for (const resumed of this.#events.turns.resume(isWanted))
      this.#link.send({ type: 'resume', ...resumed })
    this.#requests.onUp()
    this.#acknowledgements.onUp()
    const unsent = this.#unsent
    this.#unsent = []
    for (const frame of unsent) this.#link.send(frame)
    for (const nonce of this.#pings.nonces) this.#link.send({ type: 'ping', nonce })
  }

  #down(): boolean {
    this.#requests.onDown()
    this.#acknowledgements.onDown()
    this.#events.turns.onDown()
    const waiting = [this.#requests, this.#acknowledgements, this.#events, this.#pings]
    return this.#unsent.length > 0 || waiting.some(({ size }) => size > 0)
  }

  #giveUp(error: unknown): void {
    this.#requests.failAll(error)
    this.#acknowledgements.failAll(error)
    this.#unsent = []
    this.#pings.failAll(error)
    this.#events.onGivenUp(error)
  }

  #tellWatchers({ requestId, chunk }: IncomingFrameOf<'chunk'>): void {
    const chatId = this.#requests.chatOf(requestId)
    if (chatId !== undefined) this.#events.onChunk(chatId, chunk)
  }

  #read(text: string): void {
    const frame = readServerFrame(text)
    if (frame) {
      this.#options.observe?.({ type: 'frame', direction: 'in', frame })
      this.#route(frame)
    } else this.#link.renew()
  }

  #route(frame: IncomingFrame): void {
    switch (frame.type) {
      case 'start':
      case 'chunk':
      case 'end':
      case 'error':
      case 'no-active':
        if (this.#events.turns.onFrame(frame)) return
        if (frame.type === 'chunk') this.#tellWatchers(frame)
        return this.#requests.onFrame(frame)
      case 'decided':
      case 'tool-output-taken':
        return this.#acknowledgements.onFrame(frame)
      case 'pong':
        return this.#pings.onPong(frame.nonce ?? '')
      case 'refused':
        this.#options.onRefused?.(frame)
        return
      case 'turn':
      case 'user-message':
      case 'transcript':
      case 'interrupted':
      case 'status':
        return this.#events.onFrame(frame)
      case 'hello':
    }
  }
}

function browserSocket(): SocketClass {
  const found = (globalThis as { WebSocket?: SocketClass }).WebSocket
  if (found) return found
  throw new AdkError(
    'unavailable',
    'liveTransport needs a WebSocket here; pass `webSocket` from the package `ws`.',
  )
}

function emptyStream(): AdkChunkStream {
  return new ReadableStream({ start: (controller) => controller.close() })
}
