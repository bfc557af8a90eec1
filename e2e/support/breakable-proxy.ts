import { connect, createServer, type Socket } from 'node:net'

/** A TCP proxy between the browser and the server that simulates a lost connection. */
export interface BreakableProxy extends AsyncDisposable {
  readonly url: string
  /** Resets all connections. New connections work. */
  disconnect(): void
  /** Resets all connections, and new connections until `goOnline`. */
  goOffline(): void
  goOnline(): void
}

export async function openBreakableProxy(target: string): Promise<BreakableProxy> {
  const { port, hostname } = new URL(target)
  const sockets = new Set<Socket>()
  let isOffline = false
  const server = createServer((client) => {
    if (isOffline) return client.resetAndDestroy()
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
      // Resets are intended here.
      socket.on('error', () => undefined)
    }
    return client.pipe(upstream).pipe(client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const disconnect = () => {
    for (const socket of sockets) socket.resetAndDestroy()
  }
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    disconnect,
    goOffline: () => {
      isOffline = true
      disconnect()
    },
    goOnline: () => {
      isOffline = false
    },
    async [Symbol.asyncDispose]() {
      disconnect()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
