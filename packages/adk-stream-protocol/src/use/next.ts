import type { Bridge } from '../server/create-bridge.ts'

type Handler = (request: Request) => Promise<Response>

/**
 * The bridge as Next.js route handlers, for `app/api/agent/[...path]/route.ts`, with `basePath: '/api/agent'`:
 * `export const { GET, POST, PATCH, DELETE, OPTIONS } = toRouteHandlers(bridge)`.
 */
export function toRouteHandlers(
  bridge: Bridge,
): Record<'GET' | 'POST' | 'PATCH' | 'DELETE' | 'OPTIONS', Handler> {
  const handle: Handler = (request) => bridge.fetch(request)
  return { GET: handle, POST: handle, PATCH: handle, DELETE: handle, OPTIONS: handle }
}
