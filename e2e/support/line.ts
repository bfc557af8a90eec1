import { connect, createServer, type Socket } from 'node:net'

/** A stretch of network between the browser and the server that can be cut. */
export interface Line extends AsyncDisposable {
  readonly url: string
  /** Breaks every connection; new ones work again. */
  cut(): void
  /** Breaks every connection, and each new one until it is mended. */
  break(): void
  mend(): void
}

export async function openLine(target: string): Promise<Line> {
  const { port, hostname } = new URL(target)
  const sockets = new Set<Socket>()
  let isBroken = false
  const server = createServer((near) => {
    if (isBroken) return near.resetAndDestroy()
    const far = connect(Number(port), hostname)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
      // A cut is what this is for.
      socket.on('error', () => undefined)
    }
    return near.pipe(far).pipe(near)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy()
  }
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    cut,
    break: () => {
      isBroken = true
      cut()
    },
    mend: () => {
      isBroken = false
    },
    async [Symbol.asyncDispose]() {
      cut()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
