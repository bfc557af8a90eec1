import type { ClientFrame } from '../../protocol/client-frame.ts'
import { withDefaults } from '../../shared/backoff.ts'
import { AdkError, parseJson } from '../adk-error.ts'
import type { ResponseStates } from '../sync/response-states.ts'
import type { FindObserver } from '../transports/response-channel.ts'
import { nameAgent } from '../transports/name-agent.ts'
import type { WebSocketTransportOptions } from '../transports/web-socket-transport.ts'
import {
  type AudioMode,
  type LiveListener,
  ChatSubscriptions,
  ServerTurns,
} from './watched-chats.ts'
import type { IncomingFrame } from './socket-request.ts'
import { createPendingPings, PendingAcks } from './pending-acks.ts'
import { type SocketClass, ReconnectingSocket } from './reconnecting-socket.ts'
import { SocketRequests } from './socket-requests.ts'

interface Dependencies {
  readonly options: WebSocketTransportOptions
  readonly responses: ResponseStates
  readonly findObserver: FindObserver
}

/** Everything that goes over a socket. Routes each frame, and restores the session over the next socket when one is lost. */
export class SocketSession {
  readonly socket: ReconnectingSocket
  readonly requests: SocketRequests
  readonly acks: PendingAcks
  readonly #turns: ServerTurns
  readonly #subscriptions = new ChatSubscriptions()
  readonly #pings = createPendingPings()
  readonly #options: WebSocketTransportOptions
  readonly #findObserver: FindObserver
  readonly #heartbeat = createHeartbeat({
    isWaiting: () => this.#isWaiting,
    ping: () => this.socket.send({ type: 'ping' }),
    onDead: () => this.socket.abandon(),
  })
  /** Frames without a reply that wait for a socket. */
  #unsent: ClientFrame[] = []

  constructor({ options, responses, findObserver }: Dependencies) {
    this.#options = options
    this.#findObserver = findObserver
    const { observe } = options
    const socket = (): ReconnectingSocket => this.socket
    const isWatched = (chatId: string): boolean => this.#subscriptions.audioOf(chatId) !== undefined
    this.requests = new SocketRequests({ socket, findObserver, observe, responses, isWatched })
    this.acks = new PendingAcks(socket)
    this.#turns = new ServerTurns({
      findObserver,
      observe,
      onChunk: (chatId, chunk) => this.#subscriptions.onChunk(chatId, chunk),
    })
    this.socket = new ReconnectingSocket({
      url: options.url,
      webSocket: () => options.webSocket ?? browserSocket(),
      backoff: withDefaults(options.backoff),
      onFrame: (text) => this.#onText(text),
      onSend: (frame) => observe?.({ type: 'frame', direction: 'out', frame }),
      onAudio: (bytes) => {
        this.#heartbeat.onReceived()
        observe?.({ type: 'sound', direction: 'in', bytes: bytes.byteLength })
        this.#subscriptions.onAudio(bytes)
      },
      onOpen: () => this.#onOpen(),
      onLost: () => this.#onLost(),
      onGivenUp: (error, { isFinal }) => this.#onGivenUp(error, isFinal),
    })
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
    const subscriptions = this.#subscriptions
    const remove = subscriptions.add(chatId, audio, listener)
    this.socket.open()
    // A socket that is opened later subscribes to all watched chats.
    this.#updateWatch(chatId)
    return () => {
      const before = subscriptions.audioOf(chatId)
      const { audioChatId } = subscriptions
      remove()
      if (subscriptions.audioOf(chatId) !== before) this.#updateWatch(chatId)
      const now = subscriptions.audioChatId
      if (now !== undefined && now !== audioChatId) this.#updateWatch(now)
    }
  }

  /** Sends how a chat is watched now. */
  #updateWatch(chatId: string): void {
    const audio = this.#subscriptions.audioOf(chatId)
    if (audio === undefined) this.socket.send({ type: 'unwatch', id: chatId })
    else this.#sendWatch(chatId, audio)
  }

  #sendWatch(id: string, audio: AudioMode): void {
    this.socket.send({ type: 'watch', id, audio, ...nameAgent(this.#options.agent, id) })
  }

  /** Whether anything needs the server. */
  get #isWaiting(): boolean {
    const waiting = [this.requests, this.acks, this.#subscriptions, this.#pings]
    return this.#unsent.length > 0 || waiting.some(({ size }) => size > 0)
  }

  #onOpen(): void {
    this.#heartbeat.start()
    for (const { id, audio } of this.#subscriptions.watched()) this.#sendWatch(id, audio)
    // A chat that reads a stream of its own resumes that one.
    const isWanted = (id: string): boolean =>
      this.#subscriptions.audioOf(id) !== undefined && !this.requests.ofChat(id)
    for (const request of this.#turns.resume(isWanted))
      this.socket.send({ type: 'resume', ...request })
    this.requests.onOpen()
    this.acks.onOpen()
    const unsent = this.#unsent
    this.#unsent = []
    for (const frame of unsent) this.socket.send(frame)
    for (const nonce of this.#pings.nonces) this.socket.send({ type: 'ping', nonce })
  }

  #onLost(): boolean {
    this.#heartbeat.stop()
    this.requests.onLost()
    this.acks.onLost()
    this.#turns.onLost()
    return this.#isWaiting
  }

  /** Decisions and tool results wait for a page that tries on. The person can take a decision back. */
  #onGivenUp(error: unknown, isFinal: boolean): void {
    this.#heartbeat.stop()
    this.requests.failAll(error, { keepResponses: !isFinal })
    if (isFinal) this.acks.failAll(error)
    const unsent = this.#unsent
    this.#unsent = []
    const message = 'There is no connection.'
    for (const { type } of unsent)
      this.#options.onRefused?.({ frame: type, code: 'unavailable', message })
    this.#pings.failAll(error)
    this.#subscriptions.onGivenUp(error)
  }

  #onText(text: string): void {
    this.#heartbeat.onReceived()
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
        if (chatId === undefined) {
          this.#turns.onFrame(frame)
          return
        }
        if (frame.type === 'chunk' && this.#subscriptions.size > 0)
          this.#subscriptions.onChunk(chatId, frame.chunk)
        return this.requests.onFrame(frame)
      }
      case 'decided':
      case 'tool-output-taken':
        return this.acks.onFrame(frame)
      case 'pong':
        return this.#pings.onPong(frame.nonce ?? '')
      case 'refused':
        this.#options.onRefused?.(frame)
        return
      case 'turn':
        this.#subscriptions.call(frame.id, { type: 'turn', messageId: frame.messageId })
        return this.#turns.start(frame)
      case 'user-message': {
        const { id: chatId, message } = frame
        this.#options.observe?.({ type: 'user-message', chatId, message })
        this.#findObserver(chatId)?.onUserMessage(message, 'spoken')
        return this.#subscriptions.call(chatId, frame)
      }
      case 'transcript':
      case 'interrupted':
      case 'status':
        return this.#subscriptions.call(frame.id, frame)
      case 'hello':
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

interface HeartbeatOptions {
  /** Whether anything needs the server. */
  readonly isWaiting: () => boolean
  readonly ping: () => void
  readonly onDead: () => void
}

/** The silence after which the server is pinged, and the time that it has to answer, in ms. */
const [QUIET_MS, ANSWER_MS] = [15_000, 10_000]

/** Detects a half-open connection: it accepts everything that is sent, and nothing arrives. */
export interface SocketHeartbeat {
  start(): void
  stop(): void
  onReceived(): void
}

function createHeartbeat({ isWaiting, ping, onDead }: HeartbeatOptions): SocketHeartbeat {
  let timer: ReturnType<typeof setTimeout> | undefined
  let receivedAt = 0
  let pingedAt: number | undefined
  const onReceived = (): void => {
    receivedAt = Date.now()
  }
  const checkIn = (ms: number): void => {
    clearTimeout(timer)
    timer = setTimeout(onTimer, ms)
  }
  /** Pings now: the machine may have slept, or its network may have changed. */
  const check = (): void => {
    if (pingedAt !== undefined || !isWaiting()) return
    pingedAt = Date.now()
    ping()
    checkIn(ANSWER_MS)
  }
  const onTimer = (): void => {
    if (pingedAt !== undefined && receivedAt < pingedAt) return onDead()
    pingedAt = undefined
    const silence = Date.now() - receivedAt
    checkIn(silence < QUIET_MS ? QUIET_MS - silence : QUIET_MS)
    if (silence >= QUIET_MS) check()
  }
  const stop = (): void => {
    clearTimeout(timer)
    pingedAt = undefined
    for (const [target, event] of networkEvents()) target.removeEventListener(event, check)
  }
  return {
    start: () => {
      stop()
      onReceived()
      checkIn(QUIET_MS)
      for (const [target, event] of networkEvents()) target.addEventListener(event, check)
    },
    stop,
    onReceived,
  }
}

/** The events of a page after which the connection may be dead. There are none outside a page. */
function networkEvents(): [target: EventTarget, event: string][] {
  const { window, document } = globalThis as { window?: EventTarget; document?: EventTarget }
  return [
    ...(window ? [[window, 'online'] satisfies [EventTarget, string]] : []),
    ...(document ? [[document, 'visibilitychange'] satisfies [EventTarget, string]] : []),
  ]
}
