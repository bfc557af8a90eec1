import type { ClientFrame, ClientFrameOf } from '../../protocol/client-frame.ts'
import type { ErrorCode } from '../../protocol/errors.ts'
import { type Backoff, withDefaults } from '../../shared/backoff.ts'
import { AdkError, parseJson, disconnected } from '../adk-error.ts'
import { createPrincipalTag } from '../connection/principal-tag.ts'
import type { ResponseStates } from '../connection/response-states.ts'
import { type AgentOption, type FindObserver, nameAgent } from '../connection/transport.ts'
import { type AudioMode, type LiveListener, WatchedChats } from './watched-chats.ts'
import type { IncomingFrame } from './socket-request.ts'
import { type SocketClass, ReconnectingSocket } from './reconnecting-socket.ts'
import { SocketOutbox } from './socket-outbox.ts'
import { SocketRequests } from './socket-requests.ts'
import { type Deferred, defer } from '../../shared/async.ts'
import { newId, type WireObserver } from '../connection/wire-events.ts'

/** Options of `webSocketTransport`. */
export interface WebSocketTransportOptions {
  /** The URL of the socket. A function is called for each connection, for URLs with a token. */
  readonly url: string | (() => string | Promise<string>)
  /**
   * The agent of new chats, if the bridge has several. A function is called for each chat. A chat that has another agent rejects messages
   * with `other-agent`. Default: the bridge chooses. `body.agent` of a message overrides it.
   */
  readonly agent?: AgentOption
  /** Default: the browser's `WebSocket`. In Node, pass the one of the package `ws`. */
  readonly webSocket?: SocketClass
  /** Whether the stream of an attached chat stays open while it waits for a person. Default true. */
  readonly hold?: boolean
  readonly backoff?: Backoff
  /** Called with everything that is sent and received, for a recorder or an inspector. */
  readonly observe?: WireObserver
  /** Called when the server rejects a frame that has no reply, or when such a frame cannot be sent (`unavailable`). */
  readonly onRefused?: (refusal: { frame: string; code: ErrorCode; message: string }) => void
}

interface Dependencies {
  readonly options: WebSocketTransportOptions
  readonly responses: ResponseStates
  readonly findObserver: FindObserver
}

/** Everything that goes over a socket. Routes each frame, and restores the session over the next socket when one is lost. */
export class SocketSession {
  readonly socket: ReconnectingSocket
  readonly requests: SocketRequests
  readonly outbox: SocketOutbox
  readonly #watched: WatchedChats
  readonly #pings = createPendingPings()
  readonly #options: WebSocketTransportOptions
  readonly #findObserver: FindObserver
  /** Frames without a reply that wait for a socket. */
  #unsent: ClientFrame[] = []
  /** The tag of the principal of the newest socket. */
  readonly principal = createPrincipalTag()

  /** Who sends a message. Undefined if the transport was closed: then the page does not know who is signed in. */
  get writer(): string | undefined {
    return this.socket.status.current.state === 'closed' ? undefined : this.principal.current
  }

  constructor({ options, responses, findObserver }: Dependencies) {
    this.#options = options
    this.#findObserver = findObserver
    const { observe } = options
    const socket = (): ReconnectingSocket => this.socket
    const isWatched = (chatId: string): boolean => this.#watched.audioOf(chatId) !== undefined
    const ping = (): Promise<number> => this.ping()
    const backoff = withDefaults(options.backoff)
    this.requests = new SocketRequests({
      socket,
      backoff,
      findObserver,
      observe,
      responses,
      isWatched,
      ping,
    })
    this.outbox = new SocketOutbox(socket, backoff)
    this.#watched = new WatchedChats(findObserver, observe)
    this.socket = new ReconnectingSocket({
      url: options.url,
      webSocket: () => options.webSocket ?? browserSocket(),
      backoff,
      onFrame: (text) => this.#onText(text),
      onSend: (frame) => observe?.({ type: 'frame', direction: 'out', frame }),
      onAudio: (bytes) => {
        observe?.({ type: 'sound', direction: 'in', bytes: bytes.byteLength })
        this.#watched.onAudio(bytes)
      },
      onOpen: () => this.#onOpen(),
      onLost: () => this.#onLost(),
      isNeeded: () => this.#isWaiting,
      onGivenUp: (error, { isFinal }) => this.#onGivenUp(error, isFinal),
    })
  }

  /** Sends a text, now or as soon as a socket is open. */
  sendText(frame: ClientFrameOf<'text'> & { readonly messageId: string }): void {
    this.outbox.send(frame).catch(() => this.#refuse('text'))
  }

  /** Sends a frame without a reply, now or as soon as a socket is open. */
  send(frame: ClientFrame): void {
    this.socket.open()
    if (!this.socket.send(frame)) this.#unsent.push(frame)
  }

  /** Resolves with the round-trip time in ms. */
  ping(): Promise<number> {
    return this.#pings.send((nonce) => {
      this.socket.open()
      this.socket.send({ type: 'ping', nonce })
    })
  }

  /** Returns a function that unsubscribes. */
  watch(chatId: string, audio: AudioMode, listener: LiveListener): () => void {
    const watched = this.#watched
    const remove = watched.add(chatId, audio, listener)
    this.socket.open()
    // A socket that is opened later subscribes to all watched chats.
    this.#updateWatch(chatId)
    return () => {
      const before = watched.audioOf(chatId)
      const { audioChatId } = watched
      remove()
      if (watched.audioOf(chatId) !== before) this.#updateWatch(chatId)
      const now = watched.audioChatId
      if (now !== undefined && now !== audioChatId) this.#updateWatch(now)
    }
  }

  /** Sends how a chat is watched now. */
  #updateWatch(chatId: string): void {
    const audio = this.#watched.audioOf(chatId)
    if (audio === undefined) this.socket.send({ type: 'unwatch', id: chatId })
    else this.#sendWatch(chatId, audio)
  }

  #sendWatch(id: string, audio: AudioMode): void {
    this.socket.send({ type: 'watch', id, audio, ...nameAgent(this.#options.agent, id) })
  }

  /** Whether anything needs the server. */
  get #isWaiting(): boolean {
    const waiting = [this.requests, this.outbox, this.#watched, this.#pings]
    return this.#unsent.length > 0 || waiting.some(({ size }) => size > 0)
  }

  #onOpen(): void {
    for (const { id, audio } of this.#watched.list()) this.#sendWatch(id, audio)
    // A chat that reads a stream of its own resumes that one.
    const isWanted = (id: string): boolean =>
      this.#watched.audioOf(id) !== undefined && !this.requests.ofChat(id)
    for (const request of this.#watched.resumeTurns(isWanted))
      this.socket.send({ type: 'resume', ...request })
    this.requests.onOpen()
    this.outbox.onOpen()
    const unsent = this.#unsent
    this.#unsent = []
    for (const frame of unsent) this.socket.send(frame)
    for (const nonce of this.#pings.nonces) this.socket.send({ type: 'ping', nonce })
  }

  #onLost(): void {
    this.requests.onLost()
    this.outbox.onLost()
    this.#watched.onLost()
  }

  /** Texts, decisions and tool results wait in a page, which keeps trying. The person can take a decision back. */
  #onGivenUp(error: unknown, isFinal: boolean): void {
    this.requests.failAll(error, { isFinal })
    if (isFinal) this.outbox.failAll(error)
    const unsent = this.#unsent
    this.#unsent = []
    for (const { type } of unsent) this.#refuse(type)
    this.#pings.failAll(error)
    this.#watched.onGivenUp(error)
  }

  #refuse(frame: string): void {
    const message = 'There is no connection.'
    this.#options.onRefused?.({ frame, code: 'unavailable', message })
  }

  #onText(text: string): void {
    const frame = parseJson(text)
    if (!isFrame(frame)) return this.socket.renew()
    this.#options.observe?.({ type: 'frame', direction: 'in', frame })
    this.#route(frame)
  }

  #route(frame: IncomingFrame): void {
    switch (frame.type) {
      case 'start':
      case 'chunk':
      case 'end':
      case 'error':
      case 'no-active': {
        const chatId = this.requests.chatOf(frame.requestId)
        if (chatId === undefined) return this.#watched.onTurnFrame(frame)
        if (frame.type === 'chunk' && this.#watched.size > 0)
          this.#watched.onChunk(chatId, frame.chunk)
        return this.requests.onFrame(frame)
      }
      case 'decided':
      case 'tool-output-taken':
        return this.outbox.onFrame(frame)
      case 'pong':
        this.outbox.onPong(frame.nonce ?? '')
        return this.#pings.onPong(frame.nonce ?? '')
      case 'refused': {
        const { id, messageId, code, message } = frame
        this.#options.onRefused?.({ frame: frame.frame, code, message })
        if (id !== undefined && messageId !== undefined)
          this.#findObserver(id)?.onTextRefused(messageId, new AdkError(code, message))
        return
      }
      case 'turn':
        // On another server, the turn of a request is one that the server shows to all who watch the chat.
        if (this.requests.isReading(frame.id, frame.turn)) return
        this.#watched.call(frame.id, { type: 'turn', messageId: frame.messageId })
        return this.#watched.startTurn(frame)
      case 'user-message': {
        const { id: chatId, message } = frame
        this.#options.observe?.({ type: 'user-message', chatId, message })
        this.#findObserver(chatId)?.onUserMessage(message, 'spoken')
        return this.#watched.call(chatId, frame)
      }
      case 'transcript':
      case 'interrupted':
      case 'status':
        return this.#watched.call(frame.id, frame)
      case 'hello':
        return this.principal.set(frame.principal)
    }
  }
}

/** Only the type is checked: the client trusts the server that it connects to. */
function isFrame(value: unknown): value is IncomingFrame {
  return (
    typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
  )
}

function browserSocket(): SocketClass {
  const found = (globalThis as { WebSocket?: SocketClass }).WebSocket
  if (found) return found
  throw new AdkError(
    'unavailable',
    'webSocketTransport needs a WebSocket here; pass `webSocket` from the package `ws`.',
  )
}

interface Ping extends Deferred<number> {
  readonly sentAt: number
  readonly timer: ReturnType<typeof setTimeout>
}

const PING_TIMEOUT_MS = 10_000

/** Pings that the server has not answered. Each is answered, or fails after 10 seconds. */
interface PendingPings {
  readonly size: number
  /** The nonces to send again over another socket. */
  readonly nonces: readonly string[]
  /** Resolves with the round-trip time in ms. */
  send(transmit: (nonce: string) => void): Promise<number>
  onPong(nonce: string): void
  failAll(error: unknown): void
}

function createPendingPings(): PendingPings {
  const pings = new Map<string, Ping>()
  return {
    get size() {
      return pings.size
    },
    get nonces() {
      return [...pings.keys()]
    },
    send: (transmit) => {
      const nonce = newId()
      const deferred = defer<number>()
      const timer = setTimeout(() => {
        pings.delete(nonce)
        deferred.reject(disconnected('a ping was not answered'))
      }, PING_TIMEOUT_MS)
      pings.set(nonce, { ...deferred, sentAt: performance.now(), timer })
      transmit(nonce)
      return deferred.promise
    },
    onPong: (nonce) => {
      const ping = pings.get(nonce)
      if (!ping) return
      pings.delete(nonce)
      clearTimeout(ping.timer)
      ping.resolve(performance.now() - ping.sentAt)
    },
    failAll: (error) => {
      for (const { reject, timer } of pings.values()) {
        clearTimeout(timer)
        reject(error)
      }
      pings.clear()
    },
  }
}
