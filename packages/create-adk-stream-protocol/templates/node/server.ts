import { createServer } from 'node:http'

import { createBridge } from 'adk-stream-protocol/server'
import { openSqliteStore } from 'adk-stream-protocol/store'
import { toNodeListener, toUpgradeListener } from 'adk-stream-protocol/use/node'

import { agent } from './agent.ts'
import { approvals } from './approvals.ts'

const bridge = createBridge({
  agent,
  approvals,
  store: openSqliteStore({ path: 'chats.db' }),
  basePath: '/adk',
  onError: console.error,
})
const server = createServer(toNodeListener(bridge))
server.on('upgrade', toUpgradeListener(bridge)) // for WebSocket clients
server.listen(8000, () => console.log('Listening on http://localhost:8000/adk'))
bridge.closeOnSignals(server)
