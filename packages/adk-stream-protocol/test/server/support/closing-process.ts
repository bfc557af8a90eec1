/** A process with parts that report when they are closed. The first one closes when a line is written to its input. */
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { closeOnSignals } from '../../../src/server/close-on-signals.ts'

function report(line: string): void {
  writeSync(1, `${line}\n`)
}

const open: ServerResponse[] = []
const server = createServer((_request, response) => {
  open.push(response)
  response.write('first ')
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')

const bridge = {
  close: async () => {
    report('closing')
    await once(process.stdin, 'data')
    report('closed')
    // The response ends after the turn that it reads.
    setImmediate(() => open.forEach((response) => response.end('last')))
  },
}
const store = { close: () => report('store closed') }

closeOnSignals([bridge, server, store])
// It listens on a port.
report(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
report('ready')
