import type { IncomingMessage } from 'node:http'
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'

import type { Server } from 'ws'
import { WebSocketServer } from 'ws'

import { ProtocolError, toProtocolError } from '../../protocol/errors.ts'
import { SUBPROTOCOL } from '../../protocol/server-frame.ts'
import { Quota } from '../../shared/collections.ts'
import type { AuthenticateRequest, Principal } from '../auth/authenticate.ts'
import { credentialCheck } from '../auth/authenticate.ts'
import type { Exchange, JsonReply } from '../http/exchange.ts'
import { CompactExchange, reply, SECURITY_HEADERS, withHeaders } from '../http/exchange.ts'
import type { Proxies } from '../http/hosts-and-proxies.ts'
import type { HttpRouter } from '../http/http-router.ts'
import { readExchange } from '../http/request-handlers.ts'
import type { SocketConnectionOptions } from './socket-connection.ts'
import { SocketConnection, stripProtocols } from './socket-connection.ts'
import { ClosingSocket, Heartbeats } from './socket-peer.ts'

export interface SocketUpgraderOptions extends Omit<
  SocketConnectionOptions,
  'heartbeats' | 'onClosed'
> {
  readonly router: HttpRouter
  readonly proxies: Proxies
}

/** How long a client may take to confirm a close before the connection is destroyed. */
const CLOSE_TIMEOUT_MS = 1_000

/** Upgrades HTTP requests to sockets. Every refusal happens before the upgrade, with an HTTP status and a reason (WS3). */
export class SocketUpgrader {
  readonly #options: SocketUpgraderOptions
  /** In order of preference. */
  readonly #subprotocols: readonly string[]
  readonly #server: Server<typeof ClosingSocket>
  readonly #handshakeHeaders = new WeakMap<IncomingMessage, Readonly<Record<string, string>>>()
  readonly #open = new Set<SocketConnection>()
  readonly #perPrincipal: Quota
  readonly #perAddress: Quota
  /** Open and reserved sockets. */
  #count = 0
  readonly #shared: SocketConnectionOptions
  readonly #identify: (request: AuthenticateRequest) => Promise<Principal>

  constructor(options: SocketUpgraderOptions) {
    this.#options = options
    this.#subprotocols = [SUBPROTOCOL, ...options.protocols.map(({ subprotocol }) => subprotocol)]
    this.#shared = {
      ...options,
      heartbeats: new Heartbeats(options.limits.keepAliveMs),
      onClosed: (connection) => this.#open.delete(connection),
    }
    this.#identify = (request) => options.router.identify(request)
    this.#perPrincipal = new Quota(options.limits.maxSocketsPerPrincipal)
    this.#perAddress = new Quota(options.limits.maxSocketsPerAddress)
    // The types of `ws` lack this option.
    const closing = { closeTimeout: CLOSE_TIMEOUT_MS }
    this.#server = new WebSocketServer({
      ...closing,
      WebSocket: ClosingSocket,
      noServer: true,
      clientTracking: false,
      maxPayload: options.limits.maxBodyBytes,
      // A few compressed bytes can expand to megabytes, and tokens hardly compress.
      perMessageDeflate: false,
      handleProtocols: (requested) =>
        this.#subprotocols.find((known) => requested.has(known)) ?? false,
    })
    this.#server.on('headers', (lines, request) => {
      const headers = Object.entries(this.#handshakeHeaders.get(request) ?? {})
      for (const [name, value] of headers) lines.push(`${name}: ${value}`)
    })
  }

  /**
   * Handles an upgrade request. Returns false and leaves the connection untouched if the path is not the bridge's socket path,
   * because it may belong to another listener. Never throws.
   */
  async upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<boolean> {
    const exchange = this.#options.proxies.read(readExchange(request))
    if (!this.#options.router.opensSockets(exchange.url.pathname)) return false
    await this.#upgrade(request, stream, { head, exchange })
    return true
  }

  async #upgrade(
    request: IncomingMessage,
    stream: Duplex,
    { head, exchange }: { head: Buffer; exchange: Exchange },
  ): Promise<void> {
    // Without a listener, a connection reset by the client would end the process.
    stream.on('error', destroyStream)
    const result = await this.#options.router.authorizeUpgrade(exchange)
    if ('refusal' in result) return refuseUpgrade(stream, result.refusal)
    // The client disconnected during authentication. No `close` event would release a reservation.
    if (stream.destroyed) return
    const { principal, headers } = result
    const fault = this.#findFault(exchange)
    if (fault) return this.#refuse(stream, fault, headers)
    const release = this.#reserve(principal.id, this.#options.proxies.clientOf(exchange))
    if (release instanceof ProtocolError) return this.#refuse(stream, release, headers)
    stream.on('close', release)
    this.#handshakeHeaders.set(request, headers)
    const kept = new CompactExchange(exchange)
    const checkPrincipal = credentialCheck(kept, principal, this.#identify)
    this.#server.handleUpgrade(request, stream, head, (socket) => {
      const connected = { socket, stream, principal, exchange: kept, checkPrincipal }
      this.#open.add(new SocketConnection(this.#shared, connected))
    })
  }

  #refuse(stream: Duplex, error: ProtocolError, headers: Readonly<Record<string, string>>): void {
    this.#options.onRefused(error)
    const { status, retryAfterSeconds } = error
    const retry = retryAfterSeconds && { 'retry-after': String(retryAfterSeconds) }
    refuseUpgrade(stream, withHeaders(reply(status, error), { ...headers, ...retry }))
  }

  /** The number of open sockets. */
  get size(): number {
    return this.#open.size
  }

  /** Closes idle sockets. Their clients reconnect to another process. */
  closeIdle(): void {
    for (const connection of this.#open) if (connection.isIdle) void connection.close()
  }

  /** Closes all sockets. */
  async close(): Promise<void> {
    await Promise.all([...this.#open].map((connection) => connection.close()))
  }

  /** Counts a socket against the limits. Returns a function that releases it, or an error if a limit is reached. */
  #reserve(principalId: string, address: string | undefined): (() => void) | ProtocolError {
    if (this.#count >= this.#options.limits.maxSockets)
      return new ProtocolError('overloaded', { retryAfterSeconds: 5 })
    if (!this.#perPrincipal.tryTake(principalId)) return tooManySockets()
    if (address !== undefined && !this.#perAddress.tryTake(address)) {
      this.#perPrincipal.giveBack(principalId)
      return tooManySockets()
    }
    this.#count += 1
    return () => {
      this.#count -= 1
      this.#perPrincipal.giveBack(principalId)
      if (address !== undefined) this.#perAddress.giveBack(address)
    }
  }

  #findFault(exchange: Exchange): ProtocolError | undefined {
    if (this.#options.drain.isActive()) return new ProtocolError('unavailable')
    const requested = exchange.headers.get('sec-websocket-protocol')?.split(',') ?? []
    if (
      requested.length > 0 &&
      !requested.some((name) => this.#subprotocols.includes(name.trim()))
    ) {
      const message = `The supported subprotocols are ${this.#subprotocols.join(' and ')}. Request one of them, or none.`
      return new ProtocolError('bad-request', { message })
    }
    return this.#findUrlFault(exchange)
  }

  #findUrlFault(exchange: Exchange): ProtocolError | undefined {
    const { protocols, findFormat } = this.#options
    try {
      findFormat(stripProtocols(exchange, protocols))
    } catch (thrown) {
      return toProtocolError(thrown)
    }
    return protocols.flatMap(({ findFault }) => findFault(exchange) ?? [])[0]
  }
}

function tooManySockets(): ProtocolError {
  return new ProtocolError('too-many-sockets', { retryAfterSeconds: 5 })
}

/** Refuses an upgrade with an HTTP response. Browsers hide it from scripts, but logs and tools show it. */
function refuseUpgrade(stream: Duplex, { status, headers, body }: JsonReply): void {
  const json = JSON.stringify(body)
  const all = {
    ...SECURITY_HEADERS,
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(json)),
    connection: 'close',
    ...headers,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  stream.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${json}`)
}

/** Refuses an upgrade for a path that is not the bridge's. */
export function refuseUnknownPath(stream: Duplex): void {
  stream.on('error', destroyStream)
  const error = new ProtocolError('not-found')
  refuseUpgrade(stream, reply(error.status, error))
}

/** A shared listener: a closure would keep the request in memory for as long as the socket is open. */
function destroyStream(this: Duplex): void {
  this.destroy()
}
