/** Loaded before the server of a quick start: whatever port it names, it gets a free one, and tells which. */
import type { AddressInfo } from 'node:net'
import { Server } from 'node:net'

// Called with the server below.
// oxlint-disable-next-line typescript/unbound-method
const listen: (this: Server, port: number, host: string) => Server = Server.prototype.listen

Server.prototype.listen = function listenAnywhere(this: Server) {
  // A server that listens on a port has such an address.
  this.once('listening', () => process.send?.({ port: (this.address() as AddressInfo).port }))
  return listen.call(this, 0, '127.0.0.1')
}
