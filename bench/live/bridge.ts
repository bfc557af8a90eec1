import { once } from 'node:events'
import { mkdtemp } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createBridge } from 'adk-stream-protocol/server'
import { openSqliteStore } from 'adk-stream-protocol/store'
import { toUpgradeListener } from 'adk-stream-protocol/use/node'

import { answerParent } from './child.ts'
import { createTalker, RUN_CONFIG } from './talker.ts'

/** The whole bridge on a SQLite file, with its sockets; the clients are the measuring process. */
const folder = await mkdtemp(join(tmpdir(), 'live-bench-'))
const bridge = createBridge({
  agent: createTalker(),
  store: await openSqliteStore({ path: join(folder, 'bench.db') }),
  authenticate: () => ({ id: 'person' }),
  live: { runConfig: RUN_CONFIG, graceMs: 600_000 },
  limits: {
    maxSocketsPerPrincipal: 1_000,
    maxTurnsPerPrincipal: 1_000,
    maxFramesPerSecond: 10_000,
  },
})
const server = createServer()
server.on('upgrade', toUpgradeListener(bridge))
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const never = (): never => {
  throw new Error('The clients of the bridge are elsewhere.')
}
// A server that listens on a port has such an address.
answerParent({ open: never, say: never }, (server.address() as AddressInfo).port)
