import type { Bridge } from 'adk-stream-protocol/server'
import { createBridge } from 'adk-stream-protocol/server'
import { openSqliteStore } from 'adk-stream-protocol/store'

import { agent } from './agent'
import { approvals } from './approvals'

interface Kept {
  store?: ReturnType<typeof openSqliteStore>
  bridge?: Bridge
  agent?: typeof agent
}
const kept = globalThis as { kept?: Kept }

/** Call this for each request. `next build` imports this file too, and must not open the database. */
export function getBridge(): Bridge {
  const own = (kept.kept ??= {})
  if (own.bridge && own.agent === agent) return own.bridge
  void own.bridge?.close()
  own.agent = agent
  own.store ??= openSqliteStore({ path: 'chats.db' })
  own.bridge = createBridge({ agent, approvals, store: own.store, basePath: '/api/agent' })
  return own.bridge
}
