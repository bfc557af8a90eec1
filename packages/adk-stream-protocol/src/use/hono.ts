import type { Bridge } from '../server/bridge.ts'

/** Returns a Hono handler for a bridge: `app.all('/api/agent/*', toHonoHandler(bridge))`, with `basePath: '/api/agent'`. */
export function toHonoHandler(
  bridge: Bridge,
): (context: { req: { raw: Request } }) => Promise<Response> {
  return (context) => bridge.fetch(context.req.raw)
}
