import type { ChatTransport } from 'ai'

import type { Chunk } from '../../protocol/chunk.ts'
import type { ErrorCode } from '../../protocol/errors.ts'
import type {
  AdkChunkStream,
  AdkUIMessage,
  ReconnectOptions,
  SendOptions,
} from '../adk-ui-message.ts'
import { ResponseStates, selectMessages } from '../sync/response-states.ts'
import type { ResponseChannel, OpenStream, DecisionSent, OutputSent } from './response-channel.ts'
import type { ChatObserver, ServerTurn } from './chat-observer.ts'
import type { AudioMode, LiveListener } from '../socket/chat-subscriptions.ts'
import { SocketSession } from '../socket/socket-session.ts'
import { ChatObservers } from './chat-observers.ts'
import type { AgentOption } from './name-agent.ts'
import { nameAgent } from './name-agent.ts'
import { newId } from '../../shared/new-id.ts'
import type { Backoff } from '../../shared/backoff.ts'
import type { Connected, ConnectionListener, ConnectionState } from './connection-state.ts'
import type { SocketClass } from '../socket/reconnecting-socket.ts'
import type { WireObserver } from './wire-events.ts'

/** Where the socket is, and how it is used. */
export interface WebSocketTransportOptions {
  /** The address of the socket; a function is asked for each one, for addresses with a token. */
  readonly url: string | (() => string | Promise<string>)
  /**
   * The agent that new chats get, where the bridge has several; a function is asked for each chat. A chat that has another agent
   * refuses messages with `other-agent`. Default: what the bridge chooses. `body.agent` of a message overrides it.
   */
  readonly agent?: AgentOption
  /** Default: the one of the browser. In Node, that of `ws`. */
  readonly webSocket?: SocketClass
  /** Whether the stream of a chat that is attached stays open while it waits for a person. Default true. */
  readonly hold?: boolean
  readonly backoff?: Backoff
  /** Sees all that passes, for a record or an inspector. */
  readonly observe?: WireObserver
  /** A frame of ours that nobody waits for, and that the server did not take, or that could not be sent (`unavailable`). */
  readonly onRefused?: (refusal: { frame: string; code: ErrorCode; message: string }) => void
}

/** The transport of a chat over one WebSocket, for `useChat` of the AI SDK 6 and 7. */
export function webSocketTransport(options: WebSocketTransportOptions): WebSocketTransport {
  return new WebSocketTransport(options)
}

/** The transport of `webSocketTransport()`: answers of all chats over one socket, and what a live conversation needs beside them. */
export class WebSocketTransport
  implements ChatTransport<AdkUIMessage>, ResponseChannel, OpenStream, Connected
{
  /** A stream that is resumed tells its message from the start. */
  readonly resumeStreamIsReplay = true
  readonly answers = new ResponseStates()
  readonly #options: WebSocketTransportOptions
  readonly #keepers = new ChatObservers()
  readonly #wire: SocketSession

  constructor(options: WebSocketTransportOptions) {
    this.#options = options
    const { answers } = this
    this.#wire = new SocketSession({ options, answers, keeperOf: this.#keepers.of })
  }

  get connection(): ConnectionState {
    return this.#wire.link.status.current
  }

  onConnection(listener: ConnectionListener): () => void {
    return this.#wire.link.status.subscribe(listener)
  }

  async sendMessages(options: SendOptions): Promise<AdkChunkStream> {
    const { chatId: id, trigger, messageId, abortSignal, body } = options
    const { messages, answered } = selectMessages({ ...options, messageId, trigger }, this.answers)
    const frame = {
      type: 'send' as const,
      requestId: '',
      id,
      trigger,
      messageId,
      messages,
      body: {
        ...nameAgent(this.#options.agent, id),
        ...body,
        // A chat that nobody looks after answers when its stream has ended, and not before.
        hold: (this.#options.hold ?? true) && this.#keepers.of(id) !== undefined,
        ...this.answers.supplementsOf(answered),
      },
    }
    const stream = await this.#wire.requests.ask(frame, answered, abortSignal)
    return stream ?? emptyStream()
  }

  async reconnectToStream(options: ReconnectOptions): Promise<AdkChunkStream | null> {
    const { chatId: id, abortSignal: signal } = options
    const revived = this.#wire.requests.takeRevived(id, signal)
    if (revived) return revived
    const stream = await this.#wire.requests.ask({ type: 'resume', requestId: '', id }, [], signal)
    return stream ?? null
  }

  /** Tells a decision at once; resolves with the state that the approval is in then. */
  decide({ chatId: id, ...decision }: DecisionSent): Promise<string> {
    const decisionId = newId()
    return this.#wire.acknowledgements.send({ type: 'decide', decisionId, id, ...decision })
  }

  /** Gives what a tool gave that ran here; resolves when the server has it. */
  async toolOutput({ chatId: id, ...output }: OutputSent): Promise<void> {
    const outputId = newId()
    await this.#wire.acknowledgements.send({ type: 'tool-output', outputId, id, ...output })
  }

  beside(chatId: string): OpenStream | undefined {
    return this.#wire.requests.ofChat(chatId) ? this : undefined
  }

  /** Ends the stream that a chat reads, to make room for another; what still comes of it is given back. */
  divert(chatId: string): ServerTurn | undefined {
    const request = this.#wire.requests.ofChat(chatId)
    if (request?.messageId === undefined) return undefined
    return { messageId: request.messageId, continues: true, chunks: request.divert() }
  }

  /** Gives the chat a chunk within the stream that it reads. */
  inject(chatId: string, chunk: Chunk): void {
    this.#wire.requests.ofChat(chatId)?.inject(chunk)
  }

  keep(chatId: string, keeper: ChatObserver): () => void {
    const release = this.#keepers.keep(chatId, keeper)
    return () => {
      release()
      // React lets a chat go and takes it again at once.
      setTimeout(() => this.#wire.requests.leaveWaiting(chatId), 0)
    }
  }

  /** Tells of all that happens in a live chat. Give back ends it. */
  watch(
    chatId: string,
    listener: LiveListener = () => undefined,
    { audio = 'none' }: { audio?: AudioMode } = {},
  ): () => void {
    return this.#wire.watch(chatId, audio, listener)
  }

  /** Says something while an answer is being given. */
  sendText(chatId: string, text: string, messageId: string = newId()): void {
    const parts = [{ type: 'text' as const, text }]
    const message = { id: messageId, role: 'user' as const, parts }
    this.#options.observe?.({ type: 'user-message', chatId, message })
    this.#keepers.of(chatId)?.onUserMessage(message, 'written')
    const named = nameAgent(this.#options.agent, chatId)
    this.#wire.say({ type: 'text', id: chatId, messageId, text, ...named })
  }

  /** Lets the model hear: 16 bit PCM at 16 kHz, of the chat that is watched with binary audio. Sound without a socket is lost. */
  sendAudio(bytes: Uint8Array<ArrayBuffer>): boolean {
    const isSent = this.#wire.link.sendBytes(bytes)
    if (isSent)
      this.#options.observe?.({ type: 'sound', direction: 'out', bytes: bytes.byteLength })
    return isSent
  }

  /** Like all that goes with sound, it is of no use later: without a socket it is not sent. */
  endAudio(chatId: string): void {
    this.#wire.link.send({ type: 'audio-end', id: chatId })
  }

  /** Shows the model a picture, as base64. */
  sendImage(chatId: string, data: string, mimeType: string): void {
    this.#wire.say({ type: 'image', id: chatId, data, mimeType })
  }

  /** Marks where the person begins and ends to speak. */
  markActivity(chatId: string, state: 'start' | 'end'): void {
    this.#wire.link.send({ type: 'activity', id: chatId, state })
  }

  /** Hears no more of what the model is saying. */
  interrupt(chatId: string): void {
    this.#wire.link.send({ type: 'interrupt', id: chatId })
  }

  /** Resolves when the server has read all that was sent before; tells how many ms that took. */
  ping(): Promise<number> {
    return this.#wire.pings.send((nonce) => {
      this.#wire.link.open()
      this.#wire.link.send({ type: 'ping', nonce })
    })
  }

  /** Ends the connection, until something is asked for. */
  close(): void {
    this.#wire.link.close()
  }
}

function emptyStream(): AdkChunkStream {
  return new ReadableStream({ start: (controller) => controller.close() })
}
