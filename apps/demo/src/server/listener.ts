import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import {
  type Authenticate,
  type Bridge,
  type BridgeOptions,
  isAllowedHost,
  ProtocolError,
} from 'adk-stream-protocol/server'

import { type DemoInfo, INSTANCE_HEADER } from '../demo-info.ts'
import type { CalendarService } from './calendar/calendar-service.ts'
import type { DirectRoute } from './direct-route.ts'
import { toAuthenticateRequest } from './http-server.ts'
import { APPROVER_ROLE } from './approval-policy.ts'
import { createPage, PAGE_DIR, SECURITY_HEADERS } from './page.ts'
import { APPROVER_ADDRESS, mayChooseRoles } from './roles.ts'
import type { Settings } from './settings.ts'

/** The listeners of the HTTP server. */
export interface NodeListeners {
  readonly request: RequestListener
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
}

export interface ListenerOptions {
  readonly bridge: Bridge
  readonly authenticate: Authenticate
  readonly direct: DirectRoute
  /** The calendar that people can sign in to, if there is one. */
  readonly calendar: CalendarService | undefined
  /** Describes the demo to a person. */
  readonly describe: (reader: DemoReader) => DemoInfo
  /** The name of this instance, sent as a header of every response. */
  readonly instance: string | undefined
  /** Host names of the demo, in addition to `localhost` and IP addresses. */
  readonly allowedHosts: NonNullable<BridgeOptions['allowedHosts']>
}

/** Serves the page, `/direct`, `/demo` and `/calendar`. The bridge handles all other requests. */
export function createListener(options: ListenerOptions): RequestListener {
  const { bridge, authenticate, direct, calendar, describe, allowedHosts, instance } = options
  const page = createPage(PAGE_DIR)
  const serve: RequestListener = (request, response) =>
    page(request, response, () => {
      // Never rejects: an error becomes a response or closes it.
      void bridge.node(request, response)
    })
  return (request, response) => {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value)
    if (instance !== undefined) response.setHeader(INSTANCE_HEADER, instance)
    if (!isAllowedHost(request.headers.host, allowedHosts)) {
      // For example a DNS rebinding attack.
      const error = new ProtocolError('forbidden-host')
      return writeJson(response, error, error.status)
    }
    const path = `${request.method} ${request.url?.split('?', 1)[0]}`
    if (calendar?.respond(request, response)) return
    if (path === 'POST /direct') void direct(request, response)
    else if (path === 'GET /demo')
      void identify(authenticate, request, response).then((roles) =>
        writeJson(
          response,
          describe({ roles, maySignIn: calendar?.serves(request.headers.host) ?? false }),
        ),
      )
    else if (path === 'GET /')
      void identify(authenticate, request, response).then((roles) =>
        hasCode(request) ? redirect(response, roles) : serve(request, response),
      )
    else serve(request, response)
  }
}

/**
 * Sets the cookie of a browser and returns its roles. The page itself sets the cookie: it sends several requests at once, and each
 * of them would create another principal. Never rejects, because the page is public.
 */
async function identify(
  authenticate: Authenticate,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<readonly string[]> {
  try {
    const principal = await authenticate(toAuthenticateRequest(request))
    for (const [name, value] of Object.entries(principal?.responseHeaders ?? {})) {
      response.setHeader(name, value)
    }
    return principal?.roles ?? []
  } catch {
    // Without a store there is no cookie. The requests of the page report the error.
    return []
  }
}

function hasCode({ url = '/' }: IncomingMessage): boolean {
  return (
    URL.canParse(url, 'http://localhost') &&
    new URL(url, 'http://localhost').searchParams.has('code')
  )
}

/** Redirects, so that the code does not stay in the URL or in the browser history. */
function redirect(response: ServerResponse, roles: readonly string[]): void {
  const location = roles.includes(APPROVER_ROLE) ? '/?view=approvals' : `${APPROVER_ADDRESS}&wrong`
  response.writeHead(303, { location, 'cache-control': 'no-store' }).end()
}

function writeJson(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
  })
  response.end(JSON.stringify(body))
}

/** The files that the page may send. The bridge accepts more. */
const FILES = {
  types: ['image/png', 'image/jpeg', 'image/webp', 'image/gif'],
  maxBytes: 5 * 1_048_576,
}

/** The person who reads the description. */
interface DemoReader {
  readonly roles: readonly string[]
  /** Whether the page of this person can sign in to the calendar. */
  readonly maySignIn: boolean
}

/** Returns a function that describes the demo to a person. `networkUrl` is its address in the network. */
export function describeDemo(
  settings: Settings,
  networkUrl: string | undefined,
): (reader: DemoReader) => DemoInfo {
  return ({ roles, maySignIn }) => ({
    modes: ['sse', 'live', 'direct'],
    model: settings.model,
    liveModel: settings.liveModel,
    emulated: settings.geminiKey === undefined,
    signIn: maySignIn,
    files: FILES,
    prices: settings.prices,
    ...(networkUrl !== undefined && { networkUrl }),
    approver: {
      is: roles.includes(APPROVER_ROLE),
      ...(mayChooseRoles(settings) && { address: APPROVER_ADDRESS }),
    },
  })
}
