/** Is loaded before the server of a quick start. The server listens on a free port in place of its own, and reports it. */
import type { AddressInfo } from 'node:net'
import { Server } from 'node:net'

type Listen = (this: Server, port: number, host: string, onListening?: () => void) => Server

// Called with the server below.
// oxlint-disable-next-line typescript/unbound-method
const listen: Listen = Server.prototype.listen

Server.prototype.listen = function listenAnywhere(this: Server, ...args: readonly unknown[]) {
  const onListening = args.find((arg) => typeof arg === 'function') as (() => void) | undefined
  // A server that listens on a port has such an address.
  this.once('listening', () => process.send?.({ port: (this.address() as AddressInfo).port }))
  return listen.call(this, 0, '127.0.0.1', onListening)
}
