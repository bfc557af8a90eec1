import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

import type { AllowedHosts, Authenticate, Bridge } from 'adk-stream-protocol/server'
import { isAllowedHost, ProtocolError } from 'adk-stream-protocol/server'

import type { DemoInfo } from '../demo-info.ts'
import type { DirectRoute } from './direct/direct-route.ts'
import { toAuthenticateRequest } from './node-request.ts'
import { APPROVER_ROLE } from './approval-policy.ts'
import { createPage, PAGE_DIR, SECURITY_HEADERS } from './page.ts'
import { APPROVER_ADDRESS } from './roles.ts'

export interface ListenerOptions {
  readonly bridge: Bridge
  readonly authenticate: Authenticate
  readonly direct: DirectRoute
  /** What a page is told that belongs to somebody with these roles. */
  readonly describe: (roles: readonly string[]) => DemoInfo
  /** Names under which browsers reach the demo, beside `localhost` and addresses. */
  readonly allowedHosts: AllowedHosts
}

/** Serves the page and what it needs beside the bridge, and behind it the bridge. */
export function createListener(options: ListenerOptions): RequestListener {
  const { bridge, authenticate, direct, describe, allowedHosts } = options
  const page = createPage(PAGE_DIR)
  const serve: RequestListener = (request, response) =>
    page(request, response, () => {
      // It never rejects: what goes wrong is answered or ends the response.
      void bridge.node(request, response)
    })
  return (request, response) => {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value)
    if (!isAllowedHost(request.headers.host, allowedHosts)) {
      // Such as a page of another site, under a name that it makes resolve to this machine.
      const error = new ProtocolError('forbidden-host')
      return writeJson(response, error, error.status)
    }
    const path = `${request.method} ${request.url?.split('?', 1)[0]}`
    if (path === 'POST /direct') void direct(request, response)
    else if (path === 'GET /demo')
      void greet(authenticate, request, response).then((roles) =>
        writeJson(response, describe(roles)),
      )
    else if (path === 'GET /')
      void greet(authenticate, request, response).then((roles) =>
        hasCode(request) ? leadOn(response, roles) : serve(request, response),
      )
    else serve(request, response)
  }
}

/**
 * Makes a browser known, and gives its roles. It comes with the page: a page asks several things at once, and would be several
 * persons if each answer made it another one. Never rejects: the page is for everybody, and who may do what is decided when they
 * do it.
 */
async function greet(
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
    // Without a store there is no cookie; whatever the page then asks says so.
    return []
  }
}

function hasCode({ url = '/' }: IncomingMessage): boolean {
  return (
    URL.canParse(url, 'http://localhost') &&
    new URL(url, 'http://localhost').searchParams.has('code')
  )
}

/** A code does not stay in the address, nor in what the browser remembers of it. */
function leadOn(response: ServerResponse, roles: readonly string[]): void {
  const location = roles.includes(APPROVER_ROLE) ? '/' : `${APPROVER_ADDRESS}&wrong`
  response.writeHead(303, { location, 'cache-control': 'no-store' }).end()
}

function writeJson(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
  })
  response.end(JSON.stringify(body))
}
