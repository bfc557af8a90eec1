// Loaded before the server of a quick start: whatever port it names, it gets a free one, and tells which.
import { Server } from 'node:net'

const listen = Server.prototype.listen

Server.prototype.listen = function listenAnywhere() {
  this.once('listening', () => process.send?.({ port: this.address().port }))
  return listen.call(this, 0, '127.0.0.1')
}
