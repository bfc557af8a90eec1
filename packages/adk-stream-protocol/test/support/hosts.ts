import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream as NodeReadableStream } from 'node:stream/web'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import { Hono } from 'hono'

import type { Bridge } from '../../src/server/index.ts'
import { toExpressHandler } from '../../src/use/express.ts'
import { toHonoHandler } from '../../src/use/hono.ts'
import { toRouteHandlers } from '../../src/use/next.ts'
import { toNodeListener } from '../../src/use/node.ts'

/** A way to mount the bridge. */
export interface Host {
  readonly name: string
  /** The path of the bridge for clients. */
  readonly path: string
  /** The option `basePath`, if the host does not remove the path. */
  readonly basePath: string
  readonly mount: (bridge: Bridge) => RequestListener
}

export const nodeHost: Host = {
  name: 'node:http',
  path: '',
  basePath: '',
  mount: toNodeListener,
}

export const hosts: readonly Host[] = [
  nodeHost,
  {
    name: 'Express',
    path: '/api/agent',
    basePath: '',
    mount(bridge) {
      const app = express()
      app.use('/api/agent', toExpressHandler(bridge))
      return app
    },
  },
  {
    name: 'Hono',
    path: '/api/agent',
    basePath: '/api/agent',
    mount(bridge) {
      const app = new Hono()
      app.all('/api/agent/*', toHonoHandler(bridge))
      const listener = getRequestListener(app.fetch)
      return (request, response) => void listener(request, response)
    },
  },
  {
    name: 'Next.js',
    path: '/api/agent',
    basePath: '/api/agent',
    mount: (bridge) => {
      const handlers = toRouteHandlers(bridge)
      return (request, response) => void callHandler(handlers, request, response)
    },
  },
]

/** Passes a request to route handlers as Next.js does: as a `Request` whose signal aborts when the client disconnects. */
async function callHandler(
  handlers: Readonly<Record<string, (request: Request) => Promise<Response>>>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const left = new AbortController()
  response.on('close', () => {
    if (!response.writableFinished) left.abort()
  })
  const method = request.method ?? 'GET'
  const handler = handlers[method]
  if (!handler) {
    response.writeHead(405).end()
    return
  }
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers)) {
    if (typeof value === 'string') headers.set(name, value)
  }
  const bodyless = method === 'GET' || method === 'DELETE' || method === 'OPTIONS'
  const answer = await handler(
    new Request(`http://${request.headers.host}${request.url}`, {
      method,
      headers,
      signal: left.signal,
      // Node converts the stream. The types of the DOM and of Node differ.
      ...(!bodyless && {
        body: Readable.toWeb(request) as unknown as ReadableStream,
        duplex: 'half',
      }),
    }),
  )
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  if (!answer.body) {
    response.end()
    return
  }
  try {
    await pipeline(Readable.fromWeb(answer.body as unknown as NodeReadableStream), response)
  } catch {
    // The client has disconnected, or the body was aborted. Both close the connection.
    response.destroy()
  }
}
