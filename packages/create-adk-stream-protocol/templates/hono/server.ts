import { serve } from '@hono/node-server'
import { createBridge } from 'adk-stream-protocol/server'
import { openSqliteStore } from 'adk-stream-protocol/store'
import { toHonoHandler } from 'adk-stream-protocol/use/hono'
import { toUpgradeListener } from 'adk-stream-protocol/use/node'
import { Hono } from 'hono'

import { agent } from './agent.ts'
import { approvals } from './approvals.ts'

const bridge = createBridge({
  agent,
  approvals,
  store: openSqliteStore({ path: 'chats.db' }),
  basePath: '/adk',
  onError: console.error,
})
const app = new Hono()
app.all('/adk/*', toHonoHandler(bridge))
const server = serve({ fetch: app.fetch, port: 8000 }, ({ port }) => {
  console.log(`Listening on http://localhost:${port}/adk`)
})
server.on('upgrade', toUpgradeListener(bridge)) // for WebSocket clients
bridge.closeOnSignals(server) // ends running replies and calls before the process ends
