import { connect, createServer, type Socket } from 'node:net'

import { listen } from '../../../../test/support/listen.ts'

/** The message of PostgreSQL that a connection is ready. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49])
/** The message of PostgreSQL that it shuts down. */
const SHUT_DOWN = (() => {
  const fields = Buffer.from('SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0')
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
})()

/** A proxy to the database whose connections a test can cut. */
export interface PostgresProxy extends AsyncDisposable {
  readonly url: string
  /** How many connections were ended by `endNewConnections`. */
  readonly ended: number
  /** From now on, the server executes statements, and its responses are lost. */
  dropAnswers(): void
  /** From now on, nothing arrives on either side, and no connection is closed. */
  dropAll(): void
  /** Ends the next connections when they are ready, as a server does that shuts down. */
  endNewConnections(count: number): void
  /** Ends all connections. New ones work, unless the proxy is away. */
  cut(): void
  /** Ends all connections, and refuses new ones until `comeBack`. */
  goAway(): void
  comeBack(): void
}

export async function openProxy(url: string): Promise<PostgresProxy> {
  const target = new URL(url)
  const port = Number(target.port)
  const sockets = new Set<Socket>()
  let drops: 'nothing' | 'answers' | 'all' = 'nothing'
  let isAway = false
  let [toEnd, ended] = [0, 0]
  const endAll = (): void => {
    for (const socket of sockets) socket.destroy()
    sockets.clear()
  }
  const server = createServer((client) => {
    if (isAway) return void client.destroy()
    const upstream = connect(port, target.hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => sockets.delete(socket))
    }
    client.on('data', (data: Buffer) => {
      if (drops !== 'all') upstream.write(data)
    })
    upstream.on('data', (data: Buffer) => {
      if (ended < toEnd && data.subarray(-READY.length).equals(READY)) {
        ended += 1
        client.end(Buffer.concat([data, SHUT_DOWN]))
      } else if (drops === 'nothing') client.write(data)
    })
    upstream.on('close', () => client.destroy())
    client.on('close', () => upstream.destroy())
  })
  target.port = String(await listen(server))
  return {
    url: target.href,
    dropAnswers: () => {
      drops = 'answers'
    },
    dropAll: () => {
      drops = 'all'
    },
    endNewConnections: (count) => {
      toEnd = count
    },
    get ended() {
      return ended
    },
    cut: () => {
      drops = 'nothing'
      endAll()
    },
    goAway: () => {
      isAway = true
      endAll()
    },
    comeBack: () => {
      isAway = false
    },
    [Symbol.asyncDispose]: async () => {
      endAll()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}
