import { EventEmitter } from 'node:events'
import type { IncomingMessage, RequestListener } from 'node:http'
import type { Duplex } from 'node:stream'

import { ProtocolError } from '../protocol/errors.ts'
import type { Bridge } from '../server/create-bridge.ts'
import { reply } from '../server/http/exchange.ts'
import { refuseUpgrade } from '../server/sockets/socket-upgrader.ts'

/** The bridge as a listener: `createServer(toNodeListener(bridge)).listen(8000)`. */
export function toNodeListener(bridge: Bridge): RequestListener {
  return (request, response) => {
    // The bridge answers its own errors; this promise never rejects.
    void bridge.node(request, response)
  }
}

/**
 * Opens the bridge's sockets: `server.on('upgrade', toUpgradeListener(bridge))`. Connections for other paths are left to the
 * server's other upgrade listeners; if there are none, they are refused with 404.
 */
export function toUpgradeListener(
  bridge: Bridge,
  options: {
    /** The path below which the bridge is mounted, where the host strips it from requests, as Express does. Default none. */
    readonly mountedAt?: string
  } = {},
): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  const { mountedAt = '' } = options
  // Node calls listeners with the server as `this`.
  return function listen(this: unknown, request, socket, head) {
    const isOnlyListener = this instanceof EventEmitter && this.listenerCount('upgrade') === 1
    void open(bridge, mountedAt, { request, socket, head }).then(
      (opened) => opened || !isOnlyListener || refuse(socket),
    )
  }
}

function refuse(socket: Duplex): void {
  socket.on('error', () => socket.destroy())
  const error = new ProtocolError('not-found')
  refuseUpgrade(socket, reply(error.status, error))
}

/** Never rejects: the bridge answers its own errors. */
async function open(
  bridge: Bridge,
  mountedAt: string,
  { request, socket, head }: { request: IncomingMessage; socket: Duplex; head: Buffer },
): Promise<boolean> {
  const { url = '/' } = request
  // In requests such a host gives the path below; here it gives all of it.
  if (!url.startsWith(`${mountedAt}/`)) return false
  request.url = url.slice(mountedAt.length)
  const opening = bridge.upgrade(request, socket, head)
  // Other listeners of the same event read the address too.
  request.url = url
  return opening
}
