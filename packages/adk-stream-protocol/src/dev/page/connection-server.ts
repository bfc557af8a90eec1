import { createServer, type RequestListener, type Server } from 'node:http'
import type { Socket } from 'node:net'

/** An HTTP server for connections that another process has accepted. */
export interface ConnectionServer {
  /** Serves a connection. */
  readonly accept: (socket: Socket) => void
  /** Closes connections that are not in use, and others after their response. */
  readonly drain: () => void
  /** Resolves when the last response is sent, at most after `waitMs`. */
  readonly close: (waitMs: number) => Promise<void>
}

export interface ConnectionListeners {
  readonly request: RequestListener
  readonly upgrade: Parameters<Server['on']>[1]
}

export function createConnectionServer(listeners: ConnectionListeners): ConnectionServer {
  /** The connections, with the number of responses that are not sent. */
  const connections = new Map<Socket, number>()
  let isDraining = false
  let onIdle: (() => void) | undefined
  const change = (socket: Socket, by: number): void => {
    const count = connections.get(socket)
    if (count === undefined) return
    connections.set(socket, count + by)
    if (isDraining && count + by === 0) socket.end()
  }
  const server = createServer((request, response) => {
    const { socket } = request
    change(socket, 1)
    response.once('close', () => change(socket, -1))
    if (isDraining) response.shouldKeepAlive = false
    listeners.request(request, response)
  })
  server.on('upgrade', (request, socket, head) => {
    // The bridge closes its sockets.
    connections.delete(request.socket)
    Reflect.apply(listeners.upgrade, server, [request, socket, head])
  })
  return {
    accept(socket) {
      connections.set(socket, 0)
      socket.once('close', () => {
        connections.delete(socket)
        if (connections.size === 0) onIdle?.()
      })
      server.emit('connection', socket)
      // It was accepted without reading.
      socket.resume()
      // A connection that was on its way when the next version took over.
      if (isDraining) socket.setTimeout(DRAINING_IDLE_MS, () => change(socket, 0))
    },
    drain() {
      isDraining = true
      for (const socket of connections.keys()) change(socket, 0)
    },
    async close(waitMs) {
      if (connections.size === 0) return
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, waitMs)
        onIdle = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    },
  }
}

/** How long a connection that arrives late may take to send its request, in ms. */
const DRAINING_IDLE_MS = 1_000
