import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'

/** Makes a server listen on a free port of this machine. Returns the port. */
export async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return portOf(server)
}

/** Returns the port on which a server listens. */
export function portOf(server: Pick<Server, 'address'>): number {
  // A server that listens on TCP has such an address.
  return (server.address() as AddressInfo).port
}
