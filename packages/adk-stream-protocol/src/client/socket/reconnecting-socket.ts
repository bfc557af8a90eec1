import type { ClientFrame } from '../../protocol/client-frame.ts'
import { CLOSE_CODES, mayRetry } from '../../protocol/close-codes.ts'
import { SUBPROTOCOL } from '../../protocol/server-frame.ts'
import { disconnected } from '../adk-error.ts'
import type { Backoff } from '../../shared/backoff.ts'
import { delayBefore } from '../../shared/backoff.ts'
import { ConnectionStatus } from '../transports/connection-state.ts'

/** A WebSocket, as far as it is used: the one of browsers, or that of `ws`. */
export interface SocketLike {
  binaryType: string
  readonly readyState: number
  /** What waits to be sent, in bytes. */
  readonly bufferedAmount?: number
  send(data: string | Uint8Array<ArrayBuffer>): void
  close(code?: number, reason?: string): void
  addEventListener(type: 'open', listener: () => void): void
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void
  addEventListener(type: 'close', listener: (event: { code: number }) => void): void
  addEventListener(type: 'error', listener: () => void): void
}

/** The class of a browser's `WebSocket`, or that of `ws`. */
export type SocketClass = new (url: string, protocols?: string | string[]) => SocketLike

export interface ReconnectingSocketOptions {
  /** The address of the socket; a function is asked for each one, for addresses with a token. */
  readonly url: string | (() => string | Promise<string>)
  /** Asked for each socket: a page that is rendered on a server has none there. */
  readonly webSocket: () => SocketClass
  readonly backoff: Required<Backoff>
  readonly onFrame: (text: string) => void
  readonly onSend: (frame: ClientFrame) => void
  readonly onAudio: (bytes: ArrayBuffer) => void
  /** A socket is open. */
  readonly onUp: () => void
  /** The socket was lost. Says whether anything waits for another one. */
  readonly onDown: () => boolean
  /** There will be no other socket until somebody asks for one. */
  readonly onGivenUp: (error: unknown) => void
}

/** How much may wait before sound is dropped, in bytes: two seconds of 16 kHz. Late sound is of no use. */
const MAX_SOUND_WAITING = 64_000

/** `WebSocket.OPEN` */
const OPEN = 1

type State =
  | { readonly name: 'idle' | 'closed' }
  | { readonly name: 'opening'; readonly socket?: SocketLike }
  | { readonly name: 'open'; readonly socket: SocketLike }
  | { readonly name: 'pausing'; readonly timer: ReturnType<typeof setTimeout> }

/** One socket after the other, as one: opened when it is needed, and again by the table of close codes. */
export class ReconnectingSocket {
  readonly status = new ConnectionStatus()
  readonly #options: ReconnectingSocketOptions
  #state: State = { name: 'idle' }
  #attempts = 0

  constructor(options: ReconnectingSocketOptions) {
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#socket !== undefined
  }

  /** The open socket. One that is closing takes frames and loses them. */
  get #socket(): SocketLike | undefined {
    const state = this.#state
    return state.name === 'open' && state.socket.readyState === OPEN ? state.socket : undefined
  }

  /** Sees to it that there is a socket, or will be. */
  open(): void {
    if (this.#state.name !== 'idle' && this.#state.name !== 'closed') return
    this.#attempts = 0
    void this.#connect()
  }

  /** Sends at once, or not at all: who waits for the socket sends when it is up. */
  send(frame: ClientFrame): boolean {
    if (!this.#socket) return false
    this.#socket.send(JSON.stringify(frame))
    this.#options.onSend(frame)
    return true
  }

  sendBytes(bytes: Uint8Array<ArrayBuffer>): boolean {
    if (!this.#socket || (this.#socket.bufferedAmount ?? 0) > MAX_SOUND_WAITING) return false
    this.#socket.send(bytes)
    return true
  }

  /** Gives the socket up that is open, and takes another one. */
  renew(): void {
    this.#socket?.close()
  }

  /** Takes another socket in the place of one that is dead, and does not wait for its close: that may take minutes. */
  abandon(): void {
    const socket = this.#socket
    if (!socket) return
    this.#down(CLOSE_CODES['dead-peer'].code)
    socket.close()
  }

  close(): void {
    const state = this.#state
    this.#state = { name: 'closed' }
    this.status.set({ state: 'closed' })
    if (state.name === 'pausing') clearTimeout(state.timer)
    if (state.name === 'open' || state.name === 'opening') state.socket?.close(1000)
    this.#options.onGivenUp(disconnected('the transport was closed'))
  }

  async #connect(): Promise<void> {
    const attempt = this.#attempts
    this.#state = { name: 'opening' }
    this.status.set(attempt === 0 ? { state: 'connecting' } : { state: 'lost', attempt })
    const { url } = this.#options
    const webSocket = this.#socketClass()
    if (!webSocket) return
    try {
      const address = typeof url === 'string' ? url : await url()
      // Somebody may have closed the transport meanwhile.
      if (this.#state.name === 'opening')
        this.#listen(new webSocket(toSocketUrl(address), SUBPROTOCOL))
    } catch (error) {
      this.#down(1006, error)
    }
  }

  /** Without one, there is no point in trying again. */
  #socketClass(): SocketClass | undefined {
    try {
      return this.#options.webSocket()
    } catch (error) {
      this.#giveUp(error)
      return undefined
    }
  }

  #giveUp(error: unknown): void {
    this.#state = { name: 'idle' }
    this.status.set({ state: 'closed' })
    this.#options.onGivenUp(error)
  }

  #listen(socket: SocketLike): void {
    const { onFrame, onAudio } = this.#options
    socket.binaryType = 'arraybuffer'
    this.#state = { name: 'opening', socket }
    socket.addEventListener('open', () => this.#up(socket))
    socket.addEventListener('message', ({ data }) => {
      if (!this.#owns(socket)) return
      if (typeof data === 'string') {
        onFrame(data)
        // A server that only says hello and goes is no better than one that is not there.
        if (this.#owns(socket) && !data.startsWith(HELLO)) this.#attempts = 0
      } else if (data instanceof ArrayBuffer) onAudio(data)
    })
    // What went wrong comes with `close`.
    socket.addEventListener('error', () => undefined)
    socket.addEventListener('close', ({ code }) => {
      if (this.#owns(socket)) this.#down(code)
    })
  }

  #owns(socket: SocketLike): boolean {
    return 'socket' in this.#state && this.#state.socket === socket
  }

  #up(socket: SocketLike): void {
    if (!this.#owns(socket)) return socket.close(1000)
    this.#state = { name: 'open', socket }
    this.status.set({ state: 'open' })
    this.#options.onUp()
  }

  #down(code: number, cause?: unknown): void {
    this.#state = { name: 'idle' }
    if (!this.#options.onDown()) return this.status.set({ state: 'idle' })
    const retry = mayRetry(code)
    const { backoff } = this.#options
    // A server that refuses before the upgrade does not say why to a browser: that is a 1006 like any other.
    const gone = retry === 'no' || retry === 'changed' || this.#attempts >= backoff.attempts
    if (gone) return this.#giveUp(disconnected(`the socket closed with ${code}`, cause))
    const isFirst = this.#attempts === 0
    const pause = retry === 'yes' && isFirst ? 0 : delayBefore(this.#attempts, backoff)
    this.#attempts += 1
    this.status.set({ state: 'lost', attempt: this.#attempts, retryAt: Date.now() + pause })
    this.#state = { name: 'pausing', timer: setTimeout(() => void this.#connect(), pause) }
  }
}

/** How the first frame of a server begins. */
const HELLO = '{"type":"hello"'

/** Not every browser takes an address of the page's own server without its scheme and name. */
function toSocketUrl(address: string): string {
  const { location } = globalThis as { location?: { readonly href: string } }
  const whole = location ? new URL(address, location.href).href : address
  return whole.replace(/^http/, 'ws')
}
