import type { ClientFrame } from '../../protocol/client-frame.ts'
import { PendingAcks } from './pending-acks.ts'
import { AdkError } from '../adk-error.ts'
import type { ResponseStates } from '../sync/response-states.ts'
import { withDefaults } from '../../shared/backoff.ts'
import type { FindObserver } from '../transports/chat-observers.ts'
import type { AudioMode, LiveListener } from './chat-subscriptions.ts'
import { ChatSubscriptions } from './chat-subscriptions.ts'
import { SocketHeartbeat } from './socket-heartbeat.ts'
import { SocketRequests } from './socket-requests.ts'
import { nameAgent } from '../transports/name-agent.ts'
import type { WebSocketTransportOptions } from '../transports/web-socket-transport.ts'
import { Pings } from './pings.ts'
import type { IncomingFrame, IncomingFrameOf } from './incoming-frame.ts'
import { readServerFrame } from './incoming-frame.ts'
import type { SocketClass } from './reconnecting-socket.ts'
import { ReconnectingSocket } from './reconnecting-socket.ts'

interface Parts {
  readonly options: WebSocketTransportOptions
  readonly answers: ResponseStates
  readonly keeperOf: FindObserver
}

/** One socket after the other with all that goes over it: every frame to whom it concerns, and what was cut off said again. */
export class SocketSession {
  readonly link: ReconnectingSocket
  readonly requests: SocketRequests
  readonly acknowledgements: PendingAcks
  readonly #events: ChatSubscriptions
  readonly pings = new Pings()
  readonly #options: WebSocketTransportOptions
  readonly #liveness = new SocketHeartbeat({
    isWaiting: () => this.#isWaiting,
    ping: () => this.link.send({ type: 'ping' }),
    onDead: () => this.link.abandon(),
  })
  /** Frames that need no answer, until there is a socket. */
  #unsent: ClientFrame[] = []

  constructor({ options, answers, keeperOf }: Parts) {
    this.#options = options
    const { observe } = options
    const link = (): ReconnectingSocket => this.link
    this.requests = new SocketRequests({ link, keeperOf, observe, answers })
    this.acknowledgements = new PendingAcks(link)
    this.#events = new ChatSubscriptions({ keeperOf, observe })
    this.link = new ReconnectingSocket({
      url: options.url,
      webSocket: () => options.webSocket ?? browserSocket(),
      backoff: withDefaults(options.backoff),
      onFrame: (text) => this.#read(text),
      onSend: (frame) => observe?.({ type: 'frame', direction: 'out', frame }),
      onAudio: (bytes) => {
        this.#liveness.heard()
        observe?.({ type: 'sound', direction: 'in', bytes: bytes.byteLength })
        this.#events.onAudio(bytes)
      },
      onUp: () => this.#up(),
      onDown: () => this.#down(),
      onGivenUp: (error) => this.#giveUp(error),
    })
  }

  /** Says something, as soon as there is a socket. */
  say(frame: ClientFrame): void {
    this.link.open()
    if (!this.link.send(frame)) this.#unsent.push(frame)
  }

  watch(chatId: string, audio: AudioMode, listener: LiveListener): () => void {
    const events = this.#events
    const leave = events.watch(chatId, audio, listener)
    this.link.open()
    // A socket that comes up later tells the server of all that is watched.
    this.#tellWatched(chatId)
    return () => {
      const before = events.audioOf(chatId)
      const { speaking } = events
      leave()
      if (events.audioOf(chatId) !== before) this.#tellWatched(chatId)
      const now = events.speaking
      if (now !== undefined && now !== speaking) this.#tellWatched(now)
    }
  }

  /** Tells the server how a chat is watched now. */
  #tellWatched(chatId: string): void {
    const audio = this.#events.audioOf(chatId)
    if (audio === undefined) this.link.send({ type: 'unwatch', id: chatId })
    else this.#sendWatch(chatId, audio)
  }

  #sendWatch(id: string, audio: AudioMode): void {
    this.link.send({ type: 'watch', id, audio, ...nameAgent(this.#options.agent, id) })
  }

  get #isWaiting(): boolean {
    const waiting = [this.requests, this.acknowledgements, this.#events, this.pings]
    return this.#unsent.length > 0 || waiting.some(({ size }) => size > 0)
  }

  #up(): void {
    this.#liveness.begin()
    for (const { id, audio } of this.#events.watched()) this.#sendWatch(id, audio)
    // A chat that reads an answer of its own asks for that itself.
    const isWanted = (id: string): boolean =>
      this.#events.audioOf(id) !== undefined && !this.requests.ofChat(id)
    for (const resumed of this.#events.turns.resume(isWanted))
      this.link.send({ type: 'resume', ...resumed })
    this.requests.onUp()
    this.acknowledgements.onUp()
    const unsent = this.#unsent
    this.#unsent = []
    for (const frame of unsent) this.link.send(frame)
    for (const nonce of this.pings.nonces) this.link.send({ type: 'ping', nonce })
  }

  #down(): boolean {
    this.#liveness.end()
    this.requests.onDown()
    this.acknowledgements.onDown()
    this.#events.turns.onDown()
    return this.#isWaiting
  }

  #giveUp(error: unknown): void {
    this.#liveness.end()
    this.requests.failAll(error)
    this.acknowledgements.failAll(error)
    const unsent = this.#unsent
    this.#unsent = []
    const message = 'There was no connection to send it over.'
    for (const { type } of unsent)
      this.#options.onRefused?.({ frame: type, code: 'unavailable', message })
    this.pings.failAll(error)
    this.#events.onGivenUp(error)
  }

  #tellWatchers({ requestId, chunk }: IncomingFrameOf<'chunk'>): void {
    const chatId = this.requests.chatOf(requestId)
    if (chatId !== undefined) this.#events.onChunk(chatId, chunk)
  }

  #read(text: string): void {
    this.#liveness.heard()
    const frame = readServerFrame(text)
    if (frame) {
      this.#options.observe?.({ type: 'frame', direction: 'in', frame })
      this.#route(frame)
    } else this.link.renew()
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
        return this.requests.onFrame(frame)
      case 'decided':
      case 'tool-output-taken':
        return this.acknowledgements.onFrame(frame)
      case 'pong':
        return this.pings.onPong(frame.nonce ?? '')
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
    'webSocketTransport needs a WebSocket here; pass `webSocket` from the package `ws`.',
  )
}
