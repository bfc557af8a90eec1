import type { Server } from 'node:net'

/** The port if none is given, and the number of ports after it that are tried. */
const DEFAULT_PORT = 8000
const TRIED_PORTS = 100

/** Reads a port of the command line. */
export function readPort(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  throw new Error(`--port ${text}: a port is a number from 0 to 65535.`)
}

/** Listens on a port, or on the first free one after the default. Returns the port. Throws an error of one sentence. */
export async function listen(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number | undefined },
): Promise<number> {
  const ports =
    port === undefined
      ? Array.from({ length: TRIED_PORTS }, (_, index) => DEFAULT_PORT + index)
      : [port]
  for (const each of ports) {
    const error = await tryPort(server, host, each)
    if (!error) {
      const address = server.address()
      return typeof address === 'object' && address ? address.port : each
    }
    if (error.code !== 'EADDRINUSE')
      throw new Error(`Cannot listen on ${host}:${each} (${error.code}).`, { cause: error })
  }
  throw new Error(
    port === undefined
      ? `The ports ${DEFAULT_PORT} to ${DEFAULT_PORT + TRIED_PORTS - 1} are in use. Choose another one with --port.`
      : `Port ${port} is in use. Stop the other program, or leave out --port to take a free one.`,
  )
}

function tryPort(
  server: Server,
  host: string,
  port: number,
): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const onError = (error: NodeJS.ErrnoException): void => resolve(error)
    server.once('error', onError)
    server.listen(port, host, () => {
      server.off('error', onError)
      resolve(undefined)
    })
  })
}
