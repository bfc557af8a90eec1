import type { IncomingMessage } from 'node:http'
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Server } from 'ws'
import { WebSocketServer } from 'ws'

import { BIDI_SUBPROTOCOL } from '../../protocol/bidi-events.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { SUBPROTOCOL } from '../../protocol/server-frame.ts'
import { Heartbeats } from './heartbeat.ts'
import { ClosingSocket } from './socket-peer.ts'
import type { AuthenticateRequest, Principal } from '../auth/authenticate.ts'
import { Quota } from '../../turns/quota.ts'
import type { Drain } from '../drain.ts'
import { Credentials } from '../auth/credentials.ts'
import type { Exchange, JsonReply } from '../http/exchange.ts'
import { KeptExchange, reply, SECURITY_HEADERS, withHeaders } from '../http/exchange.ts'
import type { FindCall } from './bidi-conversation.ts'
import { findAddressFault } from './bidi-request.ts'
import type { OpenHandlers } from './frame-handlers.ts'
import type { FrontDoor } from '../http/http-router.ts'
import { readExchange } from '../http/node-handler.ts'
import type { Connected, LiveSocketOptions } from './socket-connection.ts'
import { LiveSocket } from './socket-connection.ts'
import type { BridgeLimits } from '../options.ts'

export interface LiveDoorOptions {
  readonly door: FrontDoor
  readonly limits: BridgeLimits
  readonly openHandlers: OpenHandlers
  readonly findCall: FindCall
  readonly drain: Drain
  readonly onError: (error: unknown) => void
}

/** The first that a client knows is spoken. */
const SUBPROTOCOLS = [SUBPROTOCOL, BIDI_SUBPROTOCOL]

/** How long a client may take to answer a close before the connection is cut. */
const CLOSE_TIMEOUT_MS = 1_000

/** Lets sockets in: everything that can be refused is refused before the upgrade, with a status and a reason (WS3). */
export class LiveDoor {
  readonly #options: LiveDoorOptions
  readonly #server: Server<typeof ClosingSocket>
  readonly #handshakeHeaders = new WeakMap<IncomingMessage, Readonly<Record<string, string>>>()
  readonly #open = new Set<LiveSocket>()
  readonly #perPrincipal: Quota
  readonly #perAddress: Quota
  #taken = 0
  readonly #shared: LiveSocketOptions
  readonly #identify: (request: AuthenticateRequest) => Promise<Principal>

  constructor(options: LiveDoorOptions) {
    this.#options = options
    this.#shared = { ...options, heartbeats: new Heartbeats(options.limits.keepAliveMs) }
    this.#identify = (request) => options.door.identify(request)
    this.#perPrincipal = new Quota(options.limits.maxSocketsPerPrincipal)
    this.#perAddress = new Quota(options.limits.maxSocketsPerAddress)
    // `ws` takes options that its types do not know yet.
    const closing = { closeTimeout: CLOSE_TIMEOUT_MS }
    this.#server = new WebSocketServer({
      ...closing,
      WebSocket: ClosingSocket,
      noServer: true,
      clientTracking: false,
      maxPayload: options.limits.maxBodyBytes,
      // A few bytes can be made to inflate into megabytes; and tokens hardly compress.
      perMessageDeflate: false,
      handleProtocols: (asked) => SUBPROTOCOLS.find((known) => asked.has(known)) ?? false,
    })
    this.#server.on('headers', (lines, request) => {
      const headers = Object.entries(this.#handshakeHeaders.get(request) ?? {})
      for (const [name, value] of headers) lines.push(`${name}: ${value}`)
    })
  }

  /**
   * Answers an upgrade request for this bridge's sockets. Returns false, and leaves the connection untouched, if the path is
   * not the one of its sockets: it may belong to another listener. Never throws.
   */
  async upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<boolean> {
    const exchange = this.#options.door.readProxied(readExchange(request))
    if (!this.#options.door.opensSockets(exchange.url.pathname)) return false
    await this.#answer(request, stream, { head, exchange })
    return true
  }

  async #answer(
    request: IncomingMessage,
    stream: Duplex,
    { head, exchange }: { head: Buffer; exchange: Exchange },
  ): Promise<void> {
    // Without a listener, a client that resets the connection would end the process.
    stream.on('error', destroyStream)
    const admission = await this.#options.door.admit(exchange)
    if ('refusal' in admission) return refuseUpgrade(stream, admission.refusal)
    // Gone while it was asked who it is: its place would never be given back.
    if (stream.destroyed) return
    const { principal, headers } = admission
    const fault = this.#findFault(exchange)
    const place = fault ?? this.#takePlace(principal.id, this.#options.door.clientOf(exchange))
    if (place instanceof ProtocolError) {
      const { status, retryAfterSeconds } = place
      const retry = retryAfterSeconds && { 'retry-after': String(retryAfterSeconds) }
      return refuseUpgrade(stream, withHeaders(reply(status, place), { ...headers, ...retry }))
    }
    stream.on('close', place)
    this.#handshakeHeaders.set(request, headers)
    const kept = new KeptExchange(exchange)
    const credentials = new Credentials(kept, principal, this.#identify)
    this.#server.handleUpgrade(request, stream, head, (socket) =>
      this.#welcome({ socket, stream, principal, exchange: kept, credentials }),
    )
  }

  /** Closes the sockets whose clients read nothing and wait for nothing: they are to go elsewhere. */
  closeIdle(): void {
    for (const live of this.#open) if (live.isIdle) void live.close('going-away')
  }

  /** Closes all sockets. */
  async close(): Promise<void> {
    await Promise.all([...this.#open].map((live) => live.close('going-away')))
  }

  /** Counts a socket for its principal, its address and all; gives the way to give the place back, or why there is none. */
  #takePlace(principalId: string, address: string | undefined): (() => void) | ProtocolError {
    if (this.#taken >= this.#options.limits.maxSockets)
      return new ProtocolError('overloaded', { retryAfterSeconds: 5 })
    if (!this.#perPrincipal.tryTake(principalId)) return tooManySockets()
    if (address !== undefined && !this.#perAddress.tryTake(address)) {
      this.#perPrincipal.giveBack(principalId)
      return tooManySockets()
    }
    this.#taken += 1
    return () => {
      this.#taken -= 1
      this.#perPrincipal.giveBack(principalId)
      if (address !== undefined) this.#perAddress.giveBack(address)
    }
  }

  #welcome(connected: Connected): void {
    const live = new LiveSocket(this.#shared, connected)
    this.#open.add(live)
    connected.socket.on('close', () => this.#open.delete(live))
  }

  #findFault(exchange: Exchange): ProtocolError | undefined {
    if (this.#options.drain.active) return new ProtocolError('unavailable')
    const asked = exchange.headers.get('sec-websocket-protocol')?.split(',') ?? []
    if (asked.length > 0 && !asked.some((name) => SUBPROTOCOLS.includes(name.trim()))) {
      const message = `The subprotocols here are ${SUBPROTOCOLS.join(' and ')}. Ask for one of them, or for none.`
      return new ProtocolError('bad-request', { message })
    }
    return findAddressFault(exchange)
  }
}

function tooManySockets(): ProtocolError {
  return new ProtocolError('too-many-sockets', { retryAfterSeconds: 5 })
}

/** Answers in plain HTTP: browsers hide it, but logs, tools and people see it. */
export function refuseUpgrade(stream: Duplex, { status, headers, body }: JsonReply): void {
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

/** A listener that captures nothing: one made where a request is answered would keep all of the request for as long as the socket is open. */
function destroyStream(this: Duplex): void {
  this.destroy()
}
