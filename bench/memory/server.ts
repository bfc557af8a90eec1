// One server of `bench/memory.ts`: the bridge with its defaults, or `ws` alone. Runs without a TypeScript loader, whose memory would count.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { writeHeapSnapshot } from 'node:v8'

import { createBridge } from 'adk-stream-protocol/server'
import { openSqliteStore } from 'adk-stream-protocol/store'
import { toNodeListener, toUpgradeListener } from 'adk-stream-protocol/use/node'
import { WebSocketServer } from 'ws'

import { scriptedAgent } from '../scripted-model.ts'

/** The memory of a server after garbage collection, in bytes. */
export interface Memory {
  readonly heap: number
  /** Buffers and other memory outside the heap that V8 tracks. */
  readonly external: number
  readonly rss: number
}

/** A request for the memory figures, or for a heap snapshot in a file. */
export type Question = { readonly type: 'read' } | { readonly type: 'snapshot'; path: string }

const [kind] = process.argv.slice(-1)

const server = createServer()
if (kind === 'bridge') {
  const bridge = createBridge({
    agent: scriptedAgent(),
    store: await openSqliteStore({ path: ':memory:' }),
    // All clients have the same IP address.
    limits: { maxSocketsPerAddress: 100_000 },
  })
  server.on('request', toNodeListener(bridge))
  server.on('upgrade', toUpgradeListener(bridge))
} else {
  const sockets = new WebSocketServer({ noServer: true, clientTracking: false })
  server.on('upgrade', (request, stream, head) =>
    sockets.handleUpgrade(request, stream, head, (socket) => socket.send('hello')),
  )
}
server.listen(0, '127.0.0.1', 4_096)
await once(server, 'listening')

process.on('message', (question: Question) => {
  globalThis.gc?.()
  globalThis.gc?.()
  if (question.type === 'snapshot') writeHeapSnapshot(question.path)
  const { heapUsed, external, rss } = process.memoryUsage()
  process.send?.({ heap: heapUsed, external, rss } satisfies Memory)
})
process.on('disconnect', () => process.exit())
// A server that listens on a port has such an address.
process.send?.((server.address() as AddressInfo).port)
