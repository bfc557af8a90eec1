import type { RequestListener } from 'node:http'

import type { Bridge } from '../server/bridge.ts'
import { toNodeListener } from './node.ts'

/** Returns Express middleware for a bridge. Mount it before any body parser: `app.use('/api/agent', toExpressHandler(bridge))`. */
export function toExpressHandler(bridge: Bridge): RequestListener {
  return toNodeListener(bridge)
}
