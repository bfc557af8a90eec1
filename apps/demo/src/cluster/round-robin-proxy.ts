import { request as sendRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

import { INSTANCE_HEADER } from 'adk-stream-protocol-studio'

import type { Instance } from './instances.ts'

export interface RoundRobinProxy {
  readonly listener: (request: IncomingMessage, response: ServerResponse) => void
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
}

/**
 * Sends each request and each WebSocket to the next instance, so that two requests of one page reach two instances. `instances` returns
 * those that run now. An instance that does not accept the connection is skipped.
 */
export function createRoundRobinProxy(instances: () => readonly Instance[]): RoundRobinProxy {
  let next = 0
  const inOrder = (): Instance[] => {
    const all = instances()
    next += 1
    const start = next % Math.max(1, all.length)
    return [...all.slice(start), ...all.slice(0, start)]
  }
  return {
    listener: (request, response) => forward(inOrder(), request, response),
    upgrade: (request, socket, head) => {
      socket.on('error', () => socket.destroy())
      forwardUpgrade(inOrder(), request, { socket, head })
    },
  }
}

function forward(
  [instance, ...others]: readonly Instance[],
  request: IncomingMessage,
  response: ServerResponse,
): void {
  if (instance === undefined) {
    response.writeHead(503, { 'retry-after': '1', 'content-type': 'text/plain' })
    response.end('No instance runs. Try again in a second.')
    return
  }
  const { method, headers } = request
  const upstream = sendRequest(new URL(request.url ?? '/', instance.url), {
    method,
    headers,
    // The instance closes idle connections. A request that is sent at that moment would be lost.
    agent: false,
  })
  upstream.on('error', (error: NodeJS.ErrnoException) => {
    // Nothing was sent yet, so another instance can take the request.
    if (error.code === 'ECONNREFUSED') return forward(others, request, response)
    if (response.headersSent) response.destroy()
    else response.writeHead(502).end()
  })
  upstream.on('response', (reply) => {
    response.writeHead(reply.statusCode ?? 502, reply.headers)
    // Sends the headers of a stream before its first chunk.
    response.flushHeaders()
    reply.pipe(response)
    reply.on('error', () => response.destroy())
    // The client left. The instance must notice it.
    response.on('close', () => upstream.destroy())
  })
  // The body is sent when the instance has accepted the connection, so that it can still go to another one.
  const sendBody = (): void => void request.pipe(upstream)
  upstream.on('socket', (socket) => {
    if (socket.connecting) socket.once('connect', sendBody)
    else sendBody()
  })
  upstream.flushHeaders()
}

function forwardUpgrade(
  [instance, ...others]: readonly Instance[],
  request: IncomingMessage,
  client: { readonly socket: Duplex; readonly head: Buffer },
): void {
  const { socket, head } = client
  if (instance === undefined) {
    socket.end('HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n\r\n')
    return
  }
  const upstream = sendRequest(new URL(request.url ?? '/', instance.url), {
    headers: request.headers,
  })
  upstream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNREFUSED') forwardUpgrade(others, request, client)
    else socket.destroy()
  })
  upstream.on('upgrade', (reply, server, serverHead) => {
    // The bridge writes the response to an upgrade, without the name of the instance.
    socket.write(headOf(reply, [`${INSTANCE_HEADER}: ${instance.name}`]))
    if (serverHead.length > 0) socket.write(serverHead)
    if (head.length > 0) server.write(head)
    server.pipe(socket).pipe(server)
    server.on('error', () => socket.destroy())
    server.on('close', () => socket.destroy())
    socket.on('close', () => server.destroy())
  })
  // The instance rejected the upgrade.
  upstream.on('response', (reply) => {
    socket.write(headOf(reply))
    reply.pipe(socket)
  })
  upstream.end()
}

function headOf(
  { statusCode, statusMessage, rawHeaders }: IncomingMessage,
  added: readonly string[] = [],
): string {
  const lines = [`HTTP/1.1 ${statusCode} ${statusMessage}`, ...added]
  for (let index = 0; index < rawHeaders.length; index += 2)
    lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}
