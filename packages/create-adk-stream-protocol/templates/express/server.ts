import { createBridge } from 'adk-stream-protocol/server'
import { openSqliteStore } from 'adk-stream-protocol/store'
import { toExpressHandler } from 'adk-stream-protocol/use/express'
import { toUpgradeListener } from 'adk-stream-protocol/use/node'
import express from 'express'

import { agent } from './agent.ts'
import { approvals } from './approvals.ts'

const bridge = createBridge({
  agent,
  approvals,
  store: openSqliteStore({ path: 'chats.db' }),
  onError: console.error,
})
const app = express()
app.use('/adk', toExpressHandler(bridge)) // before any body parser
const server = app.listen(8000, () => console.log('Listening on http://localhost:8000/adk'))
server.on('upgrade', toUpgradeListener(bridge, { mountedAt: '/adk' })) // for WebSocket clients
bridge.closeOnSignals(server) // ends running replies and calls before the process ends
