import type { ClientFrame } from '../protocol/client-frame.ts'
import { mayRetry } from '../protocol/close-codes.ts'
import { SUBPROTOCOL } from '../protocol/server-frame.ts'
import { disconnected } from './adk-error.ts'

/** A WebSocket, as far as it is used: the one of browsers, or that of `ws`. */
export interface SocketLike {
  binaryType: string
  readonly readyState: number
  send(data: string | Uint8Array<ArrayBuffer>): void
  close(code?: number, reason?: string): void
  addEventListener(type: 'open', listener: () => void): void
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void
  addEventListener(type: 'close', listener: (event: { code: number }) => void): void
  addEventListener(type: 'error', listener: () => void): void
}

/** The class of a browser's `WebSocket`, or that of `ws`. */
export type SocketClass = new (url: string, protocols?: string | string[]) => SocketLike

/** How a lost socket is opened again. */
export interface Backoff {
  /** The first pause in ms; it doubles each time. Default 250. */
  readonly firstMs?: number
  /** The longest pause in ms. Default 10,000. */
  readonly maxMs?: number
  /** Attempts in a row before what waits for the socket fails. Default 8. */
  readonly attempts?: number
}

export interface SocketLinkOptions {
  /** The address of the socket; a function is asked for each one, for addresses with a token. */
  readonly url: string | (() => string | Promise<string>)
  readonly webSocket: SocketClass
  readonly backoff: Required<Backoff>
  readonly onFrame: (text: string) => void
  readonly onSend: (frame: ClientFrame) => void
  readonly onAudio: (bytes: ArrayBuffer) => void
  /** A socket is open; `again` when one was lost before. */
  readonly onUp: (again: boolean) => void
  /** The socket was lost. Says whether anything waits for another one. */
  readonly onDown: () => boolean
  /** There will be no other socket until somebody asks for one. */
  readonly onGivenUp: (error: TypeError) => void
}

/** `WebSocket.OPEN` */
const OPEN = 1

type State =
  | { readonly name: 'idle' | 'closed' }
  | { readonly name: 'opening'; readonly socket?: SocketLike }
  | { readonly name: 'open'; readonly socket: SocketLike }
  | { readonly name: 'pausing'; readonly timer: ReturnType<typeof setTimeout> }

/** One socket after the other, as one: opened when it is needed, and again by the table of close codes. */
export class SocketLink {
  readonly #options: SocketLinkOptions
  #state: State = { name: 'idle' }
  #attempts = 0
  #lost = false

  constructor(options: SocketLinkOptions) {
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
    if (!this.#socket) return false
    this.#socket.send(bytes)
    return true
  }

  /** Gives the socket up that is open, and takes another one. */
  renew(): void {
    this.#socket?.close()
  }

  close(): void {
    const state = this.#state
    this.#state = { name: 'closed' }
    if (state.name === 'pausing') clearTimeout(state.timer)
    if (state.name === 'open' || state.name === 'opening') state.socket?.close(1000)
    this.#options.onGivenUp(disconnected('the transport was closed'))
  }

  async #connect(): Promise<void> {
    this.#state = { name: 'opening' }
    const { url, webSocket } = this.#options
    try {
      const address = typeof url === 'string' ? url : await url()
      // Somebody may have closed the transport meanwhile.
      if (this.#state.name === 'opening')
        this.#listen(new webSocket(toSocketUrl(address), SUBPROTOCOL))
    } catch (error) {
      this.#down(1006, error)
    }
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
    const again = this.#lost
    this.#lost = false
    this.#options.onUp(again)
  }

  #down(code: number, cause?: unknown): void {
    this.#lost = true
    this.#state = { name: 'idle' }
    if (!this.#options.onDown()) return
    const retry = mayRetry(code)
    const { firstMs, maxMs, attempts } = this.#options.backoff
    // A server that refuses before the upgrade does not say why to a browser: that is a 1006 like any other.
    const gone = retry === 'no' || retry === 'changed' || this.#attempts >= attempts
    if (gone) {
      this.#options.onGivenUp(disconnected(`the socket closed with ${code}`, cause))
      return
    }
    const grown = Math.min(maxMs, firstMs * 2 ** this.#attempts)
    // Clients that lost one server do not come back all at once.
    const pause = retry === 'yes' && this.#attempts === 0 ? 0 : grown * (0.5 + Math.random() / 2)
    this.#attempts += 1
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
