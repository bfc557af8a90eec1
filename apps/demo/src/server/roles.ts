import { createHash, randomInt, timingSafeEqual } from 'node:crypto'

import type { Authenticate, AuthenticateRequest } from 'adk-stream-protocol/server'

import { APPROVER_ROLE } from './approval-policy.ts'
import type { Settings } from './settings.ts'

/** The address at which a browser becomes the second person, with the code of the terminal. */
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

/** Letters and digits that cannot be mistaken for each other. */
const ALPHABET = 'ABCDEFGHJKMNPQRSTVWXYZ23456789'

/** A code for the terminal, new at every start: 49 bits, in two groups that can be typed. */
export function createApproverCode(): string {
  const letters = Array.from({ length: 10 }, () => ALPHABET[randomInt(ALPHABET.length)])
  return `${letters.slice(0, 5).join('')}-${letters.slice(5).join('')}`
}

/**
 * Authenticates, and gives the role to browsers that opened the page at the approver's address with the code of the terminal,
 * until the server ends. The address alone is not enough: any page can lead a browser there.
 */
export function choosingRoles(authenticate: Authenticate, code: string): Authenticate {
  const approvers = new Set<string>()
  return async (request) => {
    const principal = await authenticate(request)
    if (!principal || principal.roles !== undefined) return principal
    // On one's own machine there are few browsers; those who make many get no further role, and nobody loses one.
    if (isApproversPage(request, code) && approvers.size < MAX_APPROVERS)
      approvers.add(principal.id)
    return approvers.has(principal.id) ? { ...principal, roles: [APPROVER_ROLE] } : principal
  }
}

function isApproversPage({ method, url }: AuthenticateRequest, code: string): boolean {
  const { pathname, searchParams } = url
  if (method !== 'GET' || pathname !== '/' || searchParams.get('as') !== 'approver') return false
  return timingSafeEqual(digest(searchParams.get('code') ?? ''), digest(code))
}

/** Of a code as a person types it. Digests have one length, as the comparison needs. */
function digest(code: string): Buffer {
  const plain = code.toUpperCase().replace(/[^A-Z\d]/g, '')
  return createHash('sha256').update(plain).digest()
}
