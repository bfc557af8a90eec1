import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { Duplex } from 'node:stream'

import { DemoError } from './demo-error.ts'

type UpgradeListener = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

export interface HttpServer extends AsyncDisposable {
  readonly url: string
}

export interface HttpServerOptions {
  readonly host: string
  /** 0 means any free port. */
  readonly port: number
  readonly listener: RequestListener
  readonly upgrade: UpgradeListener
  /** How long open responses may take to end when the server closes, in ms. */
  readonly drainMs: number
}

/** Starts listening. Disposing the server stops accepting connections, and closes those that are still open after `drainMs`. */
export async function openHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const server = createServer(
    // A slow request must not hold a connection for long. Responses have no time limit.
    { headersTimeout: 10_000, requestTimeout: 30_000, connectionsCheckingInterval: 1000 },
    options.listener,
  )
  server.on('upgrade', options.upgrade)
  const port = await listen(server, options)
  const host = options.host.includes(':') ? `[${options.host}]` : options.host
  return {
    url: `http://${host}:${port}`,
    [Symbol.asyncDispose]: () => drain(server, options.drainMs),
  }
}

function listen(server: Server, { host, port }: HttpServerOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => reject(explain(cause, host, port)))
    server.listen(port, host, () => {
      const address = server.address()
      resolve(typeof address === 'object' && address ? address.port : port)
    })
  })
}

function explain(cause: NodeJS.ErrnoException, host: string, port: number): DemoError {
  if (cause.code === 'EADDRINUSE') {
    const sentence = `Port ${port} on ${host} is in use. Stop the other program, or take any free port: PORT=0 npm start`
    return new DemoError('port-in-use', sentence, { cause })
  }
  const sentence = `Cannot listen on ${host}:${port} (${cause.code}). Set HOST and PORT to an address of this machine.`
  return new DemoError('cannot-listen', sentence, { cause })
}

async function drain(server: Server, drainMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve())
  })
  server.closeIdleConnections()
  const deadline = setTimeout(() => server.closeAllConnections(), drainMs)
  await closed
  clearTimeout(deadline)
}
