import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

import type { Authenticate, Bridge } from 'adk-stream-protocol/server'

import { createPage, PAGE_DIR, SECURITY_HEADERS } from './page.ts'

/** Serves the page, and behind it the bridge. */
export function createListener(bridge: Bridge, authenticate: Authenticate): RequestListener {
  const page = createPage(PAGE_DIR)
  const serve: RequestListener = (request, response) =>
    page(request, response, () => {
      // It never rejects: what goes wrong is answered or ends the response.
      void bridge.node(request, response)
    })
  return (request, response) => {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value)
    if (isPageItself(request))
      void greet(authenticate, request, response).then(() => serve(request, response))
    else serve(request, response)
  }
}

function isPageItself({ method, url }: IncomingMessage): boolean {
  return method === 'GET' && /^\/(?:\?|$)/.test(url ?? '')
}

/**
 * Makes a browser known. It comes with the page: a page asks several things at once, and would be several persons if each answer
 * made it another one. Never rejects: the page is for everybody, and who may do what is decided when they do it.
 */
async function greet(
  authenticate: Authenticate,
  { method = 'GET', headers, url = '/' }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const cookie = headers.cookie === undefined ? {} : { cookie: headers.cookie }
  try {
    const principal = await authenticate({
      method,
      headers: new Headers(cookie),
      url: new URL(url, 'http://localhost'),
    })
    for (const [name, value] of Object.entries(principal?.responseHeaders ?? {})) {
      response.setHeader(name, value)
    }
  } catch {
    // Without a store there is no cookie; whatever the page then asks says so.
  }
}
