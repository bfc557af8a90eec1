import type { Bridge } from '../server/bridge.ts'

type Handler = (request: Request) => Promise<Response>

/**
 * Returns Next.js route handlers for a bridge, for `app/api/agent/[...path]/route.ts` with `basePath: '/api/agent'`:
 * `export const { GET, POST, PATCH, DELETE, OPTIONS } = toRouteHandlers(getBridge)`. A function is only called when a
 * request arrives, so `next build`, which imports every route, creates no bridge and no database.
 */
export function toRouteHandlers(
  bridge: Bridge | (() => Bridge),
): Record<'GET' | 'POST' | 'PATCH' | 'DELETE' | 'OPTIONS', Handler> {
  const getBridge = typeof bridge === 'function' ? bridge : () => bridge
  const handle: Handler = (request) => getBridge().fetch(request)
  return { GET: handle, POST: handle, PATCH: handle, DELETE: handle, OPTIONS: handle }
}
