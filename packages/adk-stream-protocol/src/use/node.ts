import type { IncomingMessage, RequestListener } from 'node:http'
import type { Duplex } from 'node:stream'

import type { Bridge } from '../server/create-bridge.ts'

/** The bridge as a listener: `createServer(toNodeListener(bridge)).listen(8000)`. */
export function toNodeListener(bridge: Bridge): RequestListener {
  return (request, response) => {
    // The bridge answers its own errors; this promise never rejects.
    void bridge.node(request, response)
  }
}

/** Opens the bridge's sockets: `server.on('upgrade', toUpgradeListener(bridge))`. */
export function toUpgradeListener(
  bridge: Bridge,
  options: {
    /** The path below which the bridge is mounted, where the host strips it from requests, as Express does. Default none. */
    readonly mountedAt?: string
  } = {},
): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  const { mountedAt = '' } = options
  return (request, socket, head) => {
    const { url = '/' } = request
    // In requests such a host hands out the path below; here it hands out all of it. Elsewhere there is nothing.
    if (mountedAt !== '')
      request.url = url.startsWith(`${mountedAt}/`) ? url.slice(mountedAt.length) : '/'
    // The bridge answers its own errors; this promise never rejects.
    void bridge.upgrade(request, socket, head)
  }
}
