import { EventEmitter } from 'node:events'
import type { IncomingMessage, RequestListener } from 'node:http'
import type { Duplex } from 'node:stream'

import type { Bridge } from '../server/bridge.ts'
import { refuseUnknownPath } from '../server/sockets/socket-upgrader.ts'

/** Returns a request listener for a bridge: `createServer(toNodeListener(bridge)).listen(8000)`. */
export function toNodeListener(bridge: Bridge): RequestListener {
  return (request, response) => {
    // The bridge handles its own errors, so this promise never rejects.
    void bridge.node(request, response)
  }
}

/**
 * Returns a listener that opens the bridge's sockets: `server.on('upgrade', toUpgradeListener(bridge))`. Leaves
 * connections for other paths to the server's other upgrade listeners. If there are none, refuses them with 404.
 */
export function toUpgradeListener(
  bridge: Bridge,
  options: {
    /** The path under which the bridge is mounted, if the host strips it from requests, as Express does. Default: none. */
    readonly mountedAt?: string
  } = {},
): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  const { mountedAt = '' } = options
  // Node.js calls listeners with the server as `this`.
  return function listen(this: unknown, request, socket, head) {
    const isOnlyListener = this instanceof EventEmitter && this.listenerCount('upgrade') === 1
    void open(bridge, mountedAt, { request, socket, head }).then(
      (opened) => opened || !isOnlyListener || refuseUnknownPath(socket),
    )
  }
}

/** Never rejects, because the bridge handles its own errors. */
async function open(
  bridge: Bridge,
  mountedAt: string,
  { request, socket, head }: { request: IncomingMessage; socket: Duplex; head: Buffer },
): Promise<boolean> {
  const { url = '/' } = request
  // Such a host strips the path from requests, but not from upgrades.
  if (!url.startsWith(`${mountedAt}/`)) return false
  request.url = url.slice(mountedAt.length)
  const opening = bridge.upgrade(request, socket, head)
  // Other listeners of the same event read the URL too.
  request.url = url
  return opening
}
