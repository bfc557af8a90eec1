import type { ChatTransport } from 'ai'

import type { Chunk } from '../../protocol/chunk.ts'
import { newId } from '../connection/wire-events.ts'
import type {
  AdkChunkStream,
  AdkUIMessage,
  ReconnectOptions,
  SendOptions,
} from '../adk-ui-message.ts'
import type { AudioMode, LiveListener } from '../socket/watched-chats.ts'
import { SocketSession, type WebSocketTransportOptions } from '../socket/socket-session.ts'
import { type Identified, FirstSenders } from '../connection/principal-tag.ts'
import { ResponseStates, selectMessages } from '../connection/response-states.ts'
import {
  type ChatObserver,
  type ServerTurn,
  type OpenStream,
  type ResponseChannel,
  type SentDecision,
  type SentOutput,
  createChatObservers,
  nameAgent,
  emptyStream,
} from '../connection/transport.ts'
import type {
  Connected,
  ConnectionListener,
  ConnectionState,
} from '../connection/connection-state.ts'

/** Creates a chat transport over one WebSocket, for `useChat` of the AI SDK 6 and 7. */
export function webSocketTransport(options: WebSocketTransportOptions): WebSocketTransport {
  return new WebSocketTransport(options)
}

/** The transport of `webSocketTransport()`. One socket carries the streams of all chats, and the audio and events of live chats. */
export class WebSocketTransport
  implements ChatTransport<AdkUIMessage>, ResponseChannel, OpenStream, Connected, Identified
{
  /** A resumed stream replays its message from the start. */
  readonly resumeStreamIsReplay = true
  /** @internal For `attachChat`. */
  readonly responses = new ResponseStates()
  readonly #options: WebSocketTransportOptions
  readonly #observers = createChatObservers()
  readonly #session: SocketSession
  readonly #senders = new FirstSenders()

  constructor(options: WebSocketTransportOptions) {
    this.#options = options
    const { responses } = this
    this.#session = new SocketSession({ options, responses, findObserver: this.#observers.find })
  }

  get connection(): ConnectionState {
    return this.#session.socket.status.current
  }

  /** Returns a function that unsubscribes. */
  onConnection(listener: ConnectionListener): () => void {
    return this.#session.socket.status.subscribe(listener)
  }

  /** The tag of the person who is signed in, as far as responses of the server have shown it. It names nobody. */
  get principal(): string | undefined {
    return this.#session.principal.current
  }

  /** Calls the listener when `principal` changes. Returns a function that unsubscribes. */
  onPrincipal(listener: () => void): () => void {
    return this.#session.principal.subscribe(listener)
  }

  async sendMessages(options: SendOptions): Promise<AdkChunkStream> {
    const { chatId: id, trigger, messageId, abortSignal, body } = options
    const { messages, responseIds, decisions, outputIds, shown } = selectMessages(
      { messages: options.messages, messageId, trigger },
      this.responses.all,
    )
    // Over the next socket, another person may be signed in.
    const { writer } = this.#session
    const sender = this.#senders.ofOutputs(outputIds, this.principal)
    const known = this.#senders.ofMessage(messages.at(-1), writer)
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
        // A chat that is not attached sends its responses when the stream has ended.
        hold: (this.#options.hold ?? true) && this.#observers.find(id) !== undefined,
        positions: true,
        ...shown,
        decidedAs: responseIds.length > 0 ? sender : (known ?? writer),
        ...this.responses.supplementsOf(decisions),
      },
    }
    const stream = await this.#session.requests.open(frame, responseIds, abortSignal)
    return stream ?? emptyStream()
  }

  async reconnectToStream(options: ReconnectOptions): Promise<AdkChunkStream | null> {
    const { chatId: id, abortSignal: signal } = options
    const frame = { type: 'resume' as const, requestId: '', id, positions: true }
    return (await this.#session.requests.open(frame, [], signal)) ?? null
  }

  /** Sends a decision at once. Resolves with the new state of the approval. */
  decide({ chatId: id, ...decision }: SentDecision): Promise<string> {
    const decisionId = newId()
    const decidedAs = this.principal
    const frame = { type: 'decide', decisionId, id, ...decision, decidedAs } as const
    return this.#session.outbox.send(frame)
  }

  /** Takes back a decision that waits for a connection. Returns false if it may have arrived. */
  cancelDecision(approvalId: string): boolean {
    return (
      this.#session.outbox.cancelDecision(approvalId) ||
      this.#session.requests.cancelDecision(approvalId)
    )
  }

  /** Sends the output of a browser tool. Resolves when the server has it. */
  async toolOutput({ chatId: id, ...output }: SentOutput): Promise<void> {
    const decidedAs = this.#senders.ofOutputs([output.toolCallId], this.principal)
    const frame = { type: 'tool-output', outputId: newId(), id, ...output, decidedAs } as const
    await this.#session.outbox.send(frame)
  }

  /** @internal For `attachChat`. */
  isSending(chatId: string): boolean {
    const { frame, state } = this.#session.requests.ofChat(chatId) ?? {}
    return frame?.type === 'send' && state !== 'stopping' && state !== 'ended'
  }

  openStream(chatId: string): OpenStream | undefined {
    return this.#session.requests.ofChat(chatId) ? this : undefined
  }

  /** Ends the stream that a chat reads, so that it can read another one. Returns the rest of the stream. */
  detachReader(chatId: string): ServerTurn | undefined {
    const request = this.#session.requests.ofChat(chatId)
    if (request?.messageId === undefined) return undefined
    return { messageId: request.messageId, continues: true, chunks: request.detachReader() }
  }

  /** Adds a chunk to the stream that a chat reads. */
  pushChunk(chatId: string, chunk: Chunk): void {
    this.#session.requests.ofChat(chatId)?.pushChunk(chunk)
  }

  observeChat(chatId: string, observer: ChatObserver): () => void {
    const remove = this.#observers.add(chatId, observer)
    return () => {
      remove()
      // React detaches a chat and attaches it again at once.
      setTimeout(() => this.#session.requests.leaveWaiting(chatId), 0)
    }
  }

  /** A browser does not learn why the server rejects a socket. The feed of the chat does. */
  onFeed(_feed: object, state: ConnectionState | undefined): void {
    if (state?.isSignedOut === true) this.#session.socket.onSignedOut()
  }

  /** Subscribes to the events of a live chat. Returns a function that unsubscribes. */
  watch(
    chatId: string,
    listener: LiveListener = () => undefined,
    { audio = 'none' }: { audio?: AudioMode } = {},
  ): () => void {
    return this.#session.watch(chatId, audio, listener)
  }

  /** Sends a text message during a reply. If the connection is lost, the message is sent over the next one, once. */
  sendText(chatId: string, text: string, messageId: string = newId()): void {
    const parts = [{ type: 'text' as const, text }]
    const message = { id: messageId, role: 'user' as const, parts }
    this.#options.observe?.({ type: 'user-message', chatId, message })
    const observer = this.#observers.find(chatId)
    observer?.onUserMessage(message, 'written')
    const shown = observer && { openApprovals: observer.listOpenApprovals() }
    const named = nameAgent(this.#options.agent, chatId)
    const { writer: decidedAs } = this.#session
    const frame = { type: 'text', id: chatId, messageId, text, decidedAs } as const
    this.#session.sendText({ ...frame, ...shown, ...named })
  }

  /** Sends 16 bit PCM at 16 kHz to the chat that is watched with binary audio. Returns false if there is no socket: the audio is lost. */
  sendAudio(bytes: Uint8Array<ArrayBuffer>): boolean {
    const isSent = this.#session.socket.sendBytes(bytes)
    if (isSent)
      this.#options.observe?.({ type: 'sound', direction: 'out', bytes: bytes.byteLength })
    return isSent
  }

  /** Marks the end of the audio. Has no effect without a socket, like everything that belongs to audio. */
  endAudio(chatId: string): void {
    this.#session.socket.send({ type: 'audio-end', id: chatId })
  }

  /** Sends an image to the model, as base64. */
  sendImage(chatId: string, data: string, mimeType: string): void {
    this.#session.send({ type: 'image', id: chatId, data, mimeType })
  }

  /** Marks where the person starts and stops speaking. */
  markActivity(chatId: string, state: 'start' | 'end'): void {
    this.#session.socket.send({ type: 'activity', id: chatId, state })
  }

  /** Stops the audio of the model's current reply. */
  interrupt(chatId: string): void {
    this.#session.socket.send({ type: 'interrupt', id: chatId })
  }

  /** Resolves when the server has read everything that was sent before, with the round-trip time in ms. */
  ping(): Promise<number> {
    return this.#session.ping()
  }

  /** Closes the connection until the next request. */
  close(): void {
    this.#session.socket.close()
  }
}
