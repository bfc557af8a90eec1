import {
  STATUS_CODES,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import type { Duplex } from 'node:stream'

import {
  type Authenticate,
  type Bridge,
  type BridgeOptions,
  isAllowedHost,
  type Principal,
  ProtocolError,
} from 'adk-stream-protocol/server'
import { toUpgradeListener } from 'adk-stream-protocol/use/node'

import { INSTANCE_HEADER, type StudioDescription, StudioInfo } from '../studio-info.ts'
import { createPage, PAGE_DIR, SECURITY_HEADERS } from './page.ts'
import { toAuthenticateRequest, writeJson } from './requests.ts'

/** The listeners of a node:http server: `server.on('request', …)` and `server.on('upgrade', …)`. */
export interface StudioListeners {
  readonly request: RequestListener
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
}

/** The person who reads the description. */
export interface StudioReader {
  /** Undefined if there is no `authenticate`, or if it rejects the request. */
  readonly principal: Principal | undefined
  /** The `Host` header of the request. */
  readonly host: string | undefined
}

/** Options of `createStudioListener`. */
export interface StudioOptions {
  readonly bridge: Bridge
  /** Describes the agents and the model to a person. Called for each request of `GET /studio`. */
  readonly info: (reader: StudioReader) => StudioDescription | Promise<StudioDescription>
  /**
   * The `authenticate` of the bridge. With it, the page itself sets the cookie of a new browser: the page sends several requests at once,
   * and each of them would create another principal.
   */
  readonly authenticate?: Authenticate | undefined
  /** Host names of the server, in addition to `localhost` and IP addresses. Default: none. */
  readonly allowedHosts?: NonNullable<BridgeOptions['allowedHosts']>
  /** The name of this instance, sent as a header of every response. Default: none. */
  readonly instance?: string | undefined
  /** The folder of a page that was built with a plug-in. Default: the page without one. */
  readonly pageDir?: string
  /** Responds to requests for other paths. Returns false if it does not. */
  readonly respond?: (request: IncomingMessage, response: ServerResponse) => boolean
}

/** Serves the page and `GET /studio`. The bridge handles all other requests. Requests for other hosts are rejected. */
export function createStudioListener(options: StudioOptions): StudioListeners {
  const { bridge, authenticate, allowedHosts = [], instance, pageDir = PAGE_DIR, respond } = options
  const page = createPage(pageDir)
  const serve: RequestListener = (request, response) =>
    page(request, response, () => {
      // Never rejects: an error becomes a response or closes it.
      void bridge.node(request, response)
    })
  const openSocket = toUpgradeListener(bridge)
  return {
    request: (request, response) => {
      for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value)
      if (instance !== undefined) response.setHeader(INSTANCE_HEADER, instance)
      if (!isAllowedHost(request.headers.host, allowedHosts)) {
        // For example a DNS rebinding attack.
        const error = new ProtocolError('forbidden-host')
        return writeJson(response, error, error.status)
      }
      if (respond?.(request, response)) return
      const path = `${request.method} ${request.url?.split('?', 1)[0]}`
      if (path === 'GET /studio') void describe(options, request, response)
      else if (path === 'GET /')
        void identify(authenticate, request, response).then(() => serve(request, response))
      else serve(request, response)
    },
    // Node.js calls listeners with the server as `this`.
    upgrade(this: unknown, request, socket, head) {
      if (isAllowedHost(request.headers.host, allowedHosts))
        openSocket.call(this, request, socket, head)
      else refuse(socket)
    },
  }
}

/** Never rejects. */
async function describe(
  options: StudioOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { authenticate, bridge, info } = options
  try {
    const principal = await identify(authenticate, request, response)
    const described = await info({ principal, host: request.headers.host })
    const sessions = bridge.handles('/chats/any/session')
    const delegations = bridge.handles('/delegations')
    writeJson(response, StudioInfo.parse({ ...described, sessions, delegations }))
  } catch {
    // The page then offers every mode, and shows nothing about the model.
    const error = new ProtocolError('internal')
    writeJson(response, error, error.status)
  }
}

/** Sets the cookie of a browser and returns its principal. Never rejects, because the page is public. */
export async function identify(
  authenticate: Authenticate | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Principal | undefined> {
  try {
    const principal = await authenticate?.(toAuthenticateRequest(request))
    for (const [name, value] of Object.entries(principal?.responseHeaders ?? {}))
      response.setHeader(name, value)
    return principal ?? undefined
  } catch {
    // Without a store there is no cookie. The requests of the page report the error.
    return undefined
  }
}

function refuse(socket: Duplex): void {
  const { status } = new ProtocolError('forbidden-host')
  socket.on('error', () => socket.destroy())
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
  )
}
