import { request as sendRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

export interface RoundRobinProxy {
  readonly listener: (request: IncomingMessage, response: ServerResponse) => void
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
}

/**
 * Sends each request and each WebSocket to the next instance, so that two requests of one page reach two instances. `urls` returns
 * the instances that run now. An instance that does not accept the connection is skipped.
 */
export function createRoundRobinProxy(urls: () => readonly string[]): RoundRobinProxy {
  let next = 0
  const inOrder = (): string[] => {
    const all = urls()
    next += 1
    return all.map((_, index) => all[(next + index) % all.length] ?? '')
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
  [url, ...others]: readonly string[],
  request: IncomingMessage,
  response: ServerResponse,
): void {
  if (url === undefined) {
    response.writeHead(503, { 'retry-after': '1', 'content-type': 'text/plain' })
    response.end('No instance runs. Try again in a second.')
    return
  }
  const { method, headers } = request
  const upstream = sendRequest(new URL(request.url ?? '/', url), { method, headers })
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
  [url, ...others]: readonly string[],
  request: IncomingMessage,
  client: { readonly socket: Duplex; readonly head: Buffer },
): void {
  const { socket, head } = client
  if (url === undefined) {
    socket.end('HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n\r\n')
    return
  }
  const upstream = sendRequest(new URL(request.url ?? '/', url), { headers: request.headers })
  upstream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNREFUSED') forwardUpgrade(others, request, client)
    else socket.destroy()
  })
  upstream.on('upgrade', (reply, server, serverHead) => {
    socket.write(headOf(reply))
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

function headOf({ statusCode, statusMessage, rawHeaders }: IncomingMessage): string {
  const lines = [`HTTP/1.1 ${statusCode} ${statusMessage}`]
  for (let index = 0; index < rawHeaders.length; index += 2)
    lines.push(`${rawHeaders[index]}: ${rawHeaders[index + 1]}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}
