import type { ClientFrame } from '../../protocol/client-frame.ts'
import { CLOSE_CODES, SUBPROTOCOL, mayRetry } from '../../protocol/server-frame.ts'
import type { Backoff } from '../../shared/backoff.ts'
import { delayBefore } from '../../shared/backoff.ts'
import { disconnected, signedOut } from '../adk-error.ts'
import { onNetworkBack, createConnectionStatus } from '../connection/connection-state.ts'

/** The part of a WebSocket that is used: the browser's, or the one of `ws`. */
export interface SocketLike {
  binaryType: string
  readonly readyState: number
  /** The number of bytes that are queued. */
  readonly bufferedAmount?: number
  send(data: string | Uint8Array<ArrayBuffer>): void
  close(code?: number, reason?: string): void
  addEventListener(type: 'open', listener: () => void): void
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void
  addEventListener(type: 'close', listener: (event: { code: number }) => void): void
  addEventListener(type: 'error', listener: () => void): void
}

/** The `WebSocket` class of a browser, or the one of `ws`. */
export type SocketClass = new (url: string, protocols?: string | string[]) => SocketLike

export interface ReconnectingSocketOptions {
  /** A function is called for each connection, for URLs with a token. */
  readonly url: string | (() => string | Promise<string>)
  /** Called for each connection: there is no WebSocket while a page is rendered on a server. */
  readonly webSocket: () => SocketClass
  readonly backoff: Required<Backoff>
  readonly onFrame: (text: string) => void
  readonly onSend: (frame: ClientFrame) => void
  readonly onAudio: (bytes: ArrayBuffer) => void
  readonly onOpen: () => void
  readonly onLost: () => void
  /** Whether anything needs the server: a lost socket is then replaced, and a silent one is pinged. */
  readonly isNeeded: () => boolean
  /** The server could not be reached. If `isFinal`, no other socket is opened until `open()` is called; otherwise a page tries again. */
  readonly onGivenUp: (error: unknown, options: { readonly isFinal: boolean }) => void
}

/** With more queued bytes than this, audio is dropped: two seconds at 16 kHz. Late audio is useless. */
const MAX_QUEUED_AUDIO = 64_000

/** `WebSocket.OPEN` */
const OPEN = 1

type State =
  | { readonly name: 'idle' | 'closed' }
  | { readonly name: 'opening'; readonly socket?: SocketLike }
  | { readonly name: 'open'; readonly socket: SocketLike }
  | { readonly name: 'waiting'; readonly cancel: () => void }

/** A socket that is opened when it is needed, and again when it is lost, as the table of close codes says. */
export class ReconnectingSocket {
  readonly status = createConnectionStatus()
  readonly #options: ReconnectingSocketOptions
  readonly #heartbeat = createHeartbeat({
    isNeeded: () => this.#options.isNeeded(),
    ping: () => this.send({ type: 'ping' }),
    onDead: () => this.#abandon(),
  })
  #state: State = { name: 'idle' }
  #attempts = 0
  /** Whether requests have failed because the server could not be reached. A page keeps trying, so that it can recover by itself. */
  #isUnreachable = false
  /** Whether the server has rejected the credentials, until a socket is open again. */
  #isSignedOut = false

  constructor(options: ReconnectingSocketOptions) {
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#socket !== undefined
  }

  /** The open socket. A closing one accepts frames and loses them. */
  get #socket(): SocketLike | undefined {
    const state = this.#state
    return state.name === 'open' && state.socket.readyState === OPEN ? state.socket : undefined
  }

  /** Opens a socket, unless one is open or being opened. */
  open(): void {
    // A new request does not wait for a slow attempt.
    if (this.#isUnreachable && this.#state.name === 'waiting') return this.#retryNow()
    if (this.#state.name !== 'idle' && this.#state.name !== 'closed') return
    this.#attempts = 0
    void this.#connect()
  }

  /** Returns false if no socket is open: the frame is not sent. */
  send(frame: ClientFrame): boolean {
    if (!this.#socket) return false
    this.#socket.send(JSON.stringify(frame))
    this.#options.onSend(frame)
    return true
  }

  sendBytes(bytes: Uint8Array<ArrayBuffer>): boolean {
    if (!this.#socket || (this.#socket.bufferedAmount ?? 0) > MAX_QUEUED_AUDIO) return false
    this.#socket.send(bytes)
    return true
  }

  /** The server rejects the credentials of the page. A lost socket is not opened again: what waits for it could be sent for another person. */
  onSignedOut(): void {
    const state = this.#state
    if (state.name !== 'waiting' && state.name !== 'opening') return
    if (state.name === 'waiting') state.cancel()
    this.#rejectCredentials()
    if ('socket' in state) state.socket?.close(1000)
  }

  /** Closes the open socket and opens another one. */
  renew(): void {
    this.#socket?.close()
  }

  close(): void {
    const state = this.#state
    this.#heartbeat.stop()
    this.#state = { name: 'closed' }
    this.status.set({ state: 'closed' })
    this.#isUnreachable = false
    if (state.name === 'waiting') state.cancel()
    if (state.name === 'open' || state.name === 'opening') state.socket?.close(1000)
    this.#options.onGivenUp(disconnected('the transport was closed'), { isFinal: true })
  }

  /** Replaces a dead socket without waiting for its close event, which may take minutes. */
  #abandon(): void {
    const socket = this.#socket
    if (!socket) return
    this.#onLost(CLOSE_CODES['dead-peer'].code)
    socket.close()
  }

  async #connect(): Promise<void> {
    const attempt = this.#attempts
    this.#state = { name: 'opening' }
    this.status.set(attempt === 0 ? { state: 'connecting' } : { state: 'lost', attempt })
    const { url } = this.#options
    const webSocket = this.#socketClass()
    if (!webSocket) return
    try {
      const given = typeof url === 'string' ? url : await url()
      // The transport may have been closed meanwhile.
      if (this.#state.name === 'opening')
        this.#listen(new webSocket(toSocketUrl(given), SUBPROTOCOL))
    } catch (error) {
      this.#onLost(1006, error)
    }
  }

  /** Gives up if there is no class: another attempt would fail too. */
  #socketClass(): SocketClass | undefined {
    try {
      return this.#options.webSocket()
    } catch (error) {
      this.#abort(error)
      return undefined
    }
  }

  #rejectCredentials(): void {
    this.#isSignedOut = true
    this.#abort(signedOut())
  }

  #abort(error: unknown): void {
    this.#state = { name: 'idle' }
    this.status.set({ state: 'closed', ...(this.#isSignedOut && { isSignedOut: true }) })
    this.#isUnreachable = false
    this.#options.onGivenUp(error, { isFinal: true })
  }

  #listen(socket: SocketLike): void {
    const { onFrame, onAudio } = this.#options
    socket.binaryType = 'arraybuffer'
    this.#state = { name: 'opening', socket }
    socket.addEventListener('open', () => this.#onOpen(socket))
    socket.addEventListener('message', ({ data }) => {
      if (!this.#isCurrent(socket)) return
      this.#heartbeat.onReceived()
      if (typeof data === 'string') {
        onFrame(data)
        // A server that closes after its hello counts as a failed attempt.
        if (this.#isCurrent(socket) && !data.startsWith(HELLO)) this.#attempts = 0
      } else if (data instanceof ArrayBuffer) onAudio(data)
    })
    // `close` follows with the code.
    socket.addEventListener('error', () => undefined)
    socket.addEventListener('close', ({ code }) => {
      if (this.#isCurrent(socket)) this.#onLost(code)
    })
  }

  #isCurrent(socket: SocketLike): boolean {
    return 'socket' in this.#state && this.#state.socket === socket
  }

  #onOpen(socket: SocketLike): void {
    if (!this.#isCurrent(socket)) return socket.close(1000)
    this.#state = { name: 'open', socket }
    this.#isUnreachable = false
    this.#isSignedOut = false
    this.status.set({ state: 'open' })
    this.#heartbeat.start()
    this.#options.onOpen()
  }

  #onLost(code: number, cause?: unknown): void {
    this.#state = { name: 'idle' }
    this.#heartbeat.stop()
    this.#options.onLost()
    if (!this.#options.isNeeded() && !this.#isUnreachable) return this.status.set({ state: 'idle' })
    const retry = mayRetry(code)
    const { backoff } = this.#options
    const error = disconnected(`the socket closed with ${code}`, cause)
    // A browser does not learn why a server rejected the upgrade: the code is 1006 in any case.
    if (code === CLOSE_CODES.unauthenticated.code || this.#isSignedOut)
      return this.#rejectCredentials()
    if (retry === 'no' || retry === 'changed') return this.#abort(error)
    if (this.#attempts >= backoff.attempts) {
      if (!isPage()) return this.#abort(error)
      if (!this.#isUnreachable) this.#options.onGivenUp(error, { isFinal: false })
      this.#isUnreachable = true
    }
    const isFirst = this.#attempts === 0
    const delay = retry === 'yes' && isFirst ? 0 : delayBefore(this.#attempts, backoff)
    this.#attempts += 1
    this.status.set({ state: 'lost', attempt: this.#attempts, retryAt: Date.now() + delay })
    this.#waitToConnect(delay)
  }

  #waitToConnect(delayMs: number): void {
    const timer = setTimeout(() => this.#retryNow(), delayMs)
    const unsubscribe = onNetworkBack(() => this.#retryNow())
    const cancel = (): void => {
      clearTimeout(timer)
      unsubscribe()
    }
    this.#state = { name: 'waiting', cancel }
  }

  #retryNow(): void {
    if (this.#state.name !== 'waiting') return
    this.#state.cancel()
    void this.#connect()
  }
}

/** A program handles the error of its request, and must be able to exit. A page is there for a person who waits. */
function isPage(): boolean {
  return typeof document !== 'undefined'
}

/** The start of the server's first frame. */
const HELLO = '{"type":"hello"'

/** Not every browser accepts a URL without scheme and host. */
function toSocketUrl(url: string): string {
  const { location } = globalThis as { location?: { readonly href: string } }
  const absolute = location ? new URL(url, location.href).href : url
  return absolute.replace(/^http/, 'ws')
}

interface HeartbeatOptions {
  readonly isNeeded: () => boolean
  readonly ping: () => void
  readonly onDead: () => void
}

/** The silence after which the server is pinged, and the time that it has to answer, in ms. */
const [QUIET_MS, ANSWER_MS] = [15_000, 10_000]

/** Detects a half-open connection: it accepts everything that is sent, and nothing arrives. */
interface SocketHeartbeat {
  start(): void
  stop(): void
  onReceived(): void
}

function createHeartbeat({ isNeeded, ping, onDead }: HeartbeatOptions): SocketHeartbeat {
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
    if (pingedAt !== undefined || !isNeeded()) return
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
