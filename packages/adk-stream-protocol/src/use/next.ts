import type { Bridge } from '../server/create-bridge.ts'

type Handler = (request: Request) => Promise<Response>

/**
 * The bridge as Next.js route handlers, for `app/api/agent/[...path]/route.ts`, with `basePath: '/api/agent'`:
 * `export const { GET, POST, PATCH, DELETE, OPTIONS } = toRouteHandlers(getBridge)`. A function is called for every request and
 * not before, so that `next build`, which imports every route, creates no bridge and no database.
 */
export function toRouteHandlers(
  bridge: Bridge | (() => Bridge),
): Record<'GET' | 'POST' | 'PATCH' | 'DELETE' | 'OPTIONS', Handler> {
  const getBridge = typeof bridge === 'function' ? bridge : () => bridge
  const handle: Handler = (request) => getBridge().fetch(request)
  return { GET: handle, POST: handle, PATCH: handle, DELETE: handle, OPTIONS: handle }
}
