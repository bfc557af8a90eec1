import { WebSocket } from 'ws'

import type { WebSocketTransportOptions } from '../../../src/client/index.ts'
import { type Deferred, defer } from '../../../src/shared/async.ts'
import type { NetworkCommand } from './sync-program.ts'

/** What can be late: requests on their way to the server, or what the server sends. */
export const DELAYED = ['requests', 'feed', 'loads', 'streams', 'answers'] as const
export type Delayed = (typeof DELAYED)[number]

type SocketClass = NonNullable<WebSocketTransportOptions['webSocket']>

/** Nothing listens here. */
const NOWHERE = 'ws://127.0.0.1:1'

interface TabNetworkOptions {
  readonly headers: Readonly<Record<string, string>>
  readonly note: (line: string) => void
}

/** The network of one tab: connects it to a server, and loses, delays or repeats what it sends and receives. */
export class TabNetwork {
  /** The address that the tab uses. Its connections go to `serverUrl`. */
  readonly url = 'http://chat.test'
  /** The server of new connections. */
  serverUrl: () => string
  /** Runs what arrives over a socket in the context of the page. */
  run: (work: () => void) => void = (work) => work()
  readonly #options: TabNetworkOptions
  readonly #connections = new Set<() => void>()
  readonly #delays = new Map<Delayed, Deferred<void>>()
  #isOnline = true
  #framesLeft = Infinity
  #repeats = 0
  #loses = 0
  /** Counts everything that was sent and received, without the comments that keep feeds open. */
  activity = 0
  /** How many requests wait for their responses. */
  waiting = 0

  constructor(serverUrl: () => string, options: TabNetworkOptions) {
    this.serverUrl = serverUrl
    this.#options = options
  }

  /** Ends all connections. New ones work if the tab is online. */
  cut(): void {
    this.#framesLeft = Infinity
    for (const end of this.#connections) end()
  }

  /** Ends all connections when so many more frames were received. */
  cutAfter(frames: number): void {
    this.#framesLeft = frames
  }

  /** The server handles the next request that changes anything, and its answer is lost. */
  loseAnswer(): void {
    this.#loses += 1
  }

  /** The next event of the feed arrives twice. */
  repeatEvent(): void {
    this.#repeats += 1
  }

  delay(what: Delayed): void {
    if (!this.#delays.has(what)) this.#delays.set(what, defer())
  }

  /** Delivers everything that is late. */
  deliver(): void {
    const delays = [...this.#delays.values()]
    this.#delays.clear()
    for (const { resolve } of delays) resolve()
  }

  get isOnline(): boolean {
    return this.#isOnline
  }

  goOffline(): void {
    this.#isOnline = false
    this.cut()
  }

  goOnline(): void {
    this.#isOnline = true
  }

  /** Ends all faults. */
  heal(): void {
    this.#framesLeft = Infinity
    this.#loses = 0
    this.#repeats = 0
    this.goOnline()
    this.deliver()
  }

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const { pathname, search } = new URL(String(input))
    const isChange = (init?.method ?? 'GET') !== 'GET'
    if (isChange) await this.#arrival('requests')
    if (!this.#isOnline) throw new TypeError('fetch failed')
    const connection = new AbortController()
    const end = (): void => {
      this.#connections.delete(end)
      connection.abort(new TypeError('terminated'))
    }
    this.#connections.add(end)
    this.#note(`-> ${init?.method ?? 'GET'} ${pathname}${search} ${bodyOf(init)}`)
    let isStream = false
    this.waiting += 1
    try {
      const signals = [connection.signal, ...(init?.signal ? [init.signal] : [])]
      const response = await fetch(`${this.serverUrl()}${pathname}${search}`, {
        ...init,
        signal: AbortSignal.any(signals),
      })
      isStream = response.headers.get('content-type')?.includes('event-stream') === true
      if (isChange && this.#loses > 0) {
        this.#loses -= 1
        end()
      }
      connection.signal.throwIfAborted()
      const what = kindOf(pathname, isStream)
      if (isStream && response.body)
        return new Response(this.#frames(response.body, what, connection.signal), response)
      const text = await response.text()
      await this.#arrival(what, connection.signal)
      this.#note(`<- ${response.status} ${pathname} ${text}`)
      // Some statuses have no body.
      return new Response(text === '' ? null : text, response)
    } finally {
      this.waiting -= 1
      if (!isStream) this.#connections.delete(end)
    }
  }

  /** The class of the tab's sockets. */
  get socketClass(): SocketClass {
    // oxlint-disable-next-line typescript/no-this-alias, unicorn/no-this-assignment -- The class below has its own `this`.
    const network = this
    const { headers } = this.#options
    return class TabSocket {
      readonly #socket: WebSocket
      #outgoing: Promise<void> | undefined
      #incoming: Promise<void> | undefined

      constructor(address: string, protocols?: string | string[]) {
        const server = network.serverUrl().replace(/^http/, 'ws')
        const url = network.#isOnline ? address.replace('ws://chat.test', server) : NOWHERE
        const socket = new WebSocket(url, protocols, { headers })
        this.#socket = socket
        const end = (): void => socket.terminate()
        network.#connections.add(end)
        socket.on('close', () => network.#connections.delete(end))
        socket.on('error', () => undefined)
      }

      get binaryType(): string {
        return this.#socket.binaryType
      }

      set binaryType(type: string) {
        this.#socket.binaryType = type as WebSocket['binaryType']
      }

      get readyState(): number {
        return this.#socket.readyState
      }

      send(data: string | Uint8Array): void {
        network.#note(`-> frame ${String(data)}`)
        const delay = network.#delays.get('requests')
        const send = (): void => this.#socket.send(data)
        this.#outgoing = this.#after([this.#outgoing, delay?.promise], send)
      }

      close(code?: number, reason?: string): void {
        this.#socket.close(code, reason)
      }

      addEventListener(type: string, listener: (event: never) => void): void {
        if (type !== 'message')
          return this.#socket.addEventListener(type as 'close', listener as () => void)
        this.#socket.addEventListener('message', (event) => {
          const delay = network.#delays.get('streams')
          this.#incoming = this.#after([this.#incoming, delay?.promise], () => {
            network.#note(`<- frame ${String(event.data)}`)
            network.run(() => listener(event as never))
            network.#count()
          })
        })
      }

      /** Does the work at once, or when earlier work was done and a delay has ended. A closed socket does nothing. */
      #after(
        waits: readonly (Promise<void> | undefined)[],
        work: () => void,
      ): Promise<void> | undefined {
        if (waits.every((wait) => wait === undefined)) {
          work()
          return undefined
        }
        return (async () => {
          for (const wait of waits) await wait
          if (this.readyState === WebSocket.OPEN) work()
        })()
      }
    }
  }

  #frames(
    body: ReadableStream<Uint8Array>,
    what: Delayed,
    signal: AbortSignal,
  ): ReadableStream<Uint8Array> {
    const reader = body.getReader()
    const decoder = new TextDecoder()
    const encoder = new TextEncoder()
    let pending = ''
    const frames: string[] = []
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          while (frames.length === 0) {
            const { done, value } = await reader.read()
            if (done) return controller.close()
            pending += decoder.decode(value, { stream: true })
            frames.push(...pending.split(/(?<=\n\n)/))
            pending = frames.at(-1)?.endsWith('\n\n') ? '' : (frames.pop() ?? '')
          }
          const frame = frames.shift() ?? ''
          await this.#arrival(what, signal)
          if (frame.startsWith(':')) return controller.enqueue(encoder.encode(frame))
          if (what === 'feed' && this.#repeats > 0) {
            this.#repeats -= 1
            controller.enqueue(encoder.encode(frame))
          }
          controller.enqueue(encoder.encode(frame))
          this.#note(`<- ${what} ${frame.trim()}`)
          this.#count()
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    )
  }

  /** Resolves when something that is late may arrive. */
  async #arrival(what: Delayed, signal?: AbortSignal): Promise<void> {
    while (this.#delays.has(what)) await this.#delays.get(what)?.promise
    signal?.throwIfAborted()
  }

  #count(): void {
    this.activity += 1
    this.#framesLeft -= 1
    if (this.#framesLeft <= 0) this.cut()
  }

  #note(line: string): void {
    this.activity += 1
    this.#options.note(line)
  }
}

/** Does to a network what a command says. */
export function disturb(network: TabNetwork, command: NetworkCommand): void {
  switch (command.act) {
    case 'cut':
      return network.cut()
    case 'cut-after':
      return network.cutAfter(command.frames)
    case 'lose-answer':
      return network.loseAnswer()
    case 'repeat-event':
      return network.repeatEvent()
    case 'delay':
      return network.delay(command.what)
    case 'deliver':
      return network.deliver()
    case 'offline':
      return network.goOffline()
    case 'online':
      return network.goOnline()
  }
}

function kindOf(path: string, isStream: boolean): Delayed {
  if (path === '/events') return 'feed'
  if (isStream) return 'streams'
  return path.endsWith('/messages') ? 'loads' : 'answers'
}

function bodyOf(init: RequestInit | undefined): string {
  return typeof init?.body === 'string' ? init.body : ''
}
