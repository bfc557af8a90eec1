import type { RequestListener } from 'node:http'

import type { Bridge } from '../server/create-bridge.ts'

/** The bridge as a listener: `createServer(toNodeListener(bridge)).listen(8000)`. */
export function toNodeListener(bridge: Bridge): RequestListener {
  return (request, response) => {
    // The bridge answers its own errors; this promise never rejects.
    void bridge.node(request, response)
  }
}
