import type { Authenticate, AuthenticateRequest } from 'adk-stream-protocol/server'

import { APPROVER_ROLE } from './approval-policy.ts'
import type { Settings } from './settings.ts'

/** The address at which a browser becomes the second person. */
export const APPROVER_ADDRESS = '/?as=approver'

/**
 * Whether people may choose to be the second person, to try it with two browsers. Only where nothing is at stake: the server
 * listens on this machine alone, and the emulator answers. A proxy in front of it may look like this machine, so the address by
 * itself would not do: whoever has a key for Gemini has no such people.
 */
export function mayChooseRoles({ host, geminiKey }: Settings): boolean {
  return geminiKey === undefined && ['127.0.0.1', '::1', 'localhost'].includes(host)
}

/** So many that only a program reaches it. */
const MAX_APPROVERS = 10_000

/** Authenticates, and gives the role to browsers that opened the page at the approver's address, until the server ends. */
export function choosingRoles(authenticate: Authenticate): Authenticate {
  const approvers = new Set<string>()
  return async (request) => {
    const principal = await authenticate(request)
    if (!principal || principal.roles !== undefined) return principal
    // On one's own machine there are few browsers; those who make many get no further role, and nobody loses one.
    if (isApproversPage(request) && approvers.size < MAX_APPROVERS) approvers.add(principal.id)
    return approvers.has(principal.id) ? { ...principal, roles: [APPROVER_ROLE] } : principal
  }
}

function isApproversPage({ method, url }: AuthenticateRequest): boolean {
  return method === 'GET' && url.pathname === '/' && url.searchParams.get('as') === 'approver'
}
