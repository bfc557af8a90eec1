import { createHash, randomInt, timingSafeEqual } from 'node:crypto'

import type { Authenticate, AuthenticateRequest, BridgeOptions } from 'adk-stream-protocol/server'

import { APPROVER_ROLE } from './approval-policy.ts'
import type { Settings } from './settings.ts'
import type { Language } from '../demo-info.ts'

/** The path that makes a browser the second approver, together with the code from the terminal. */
export const APPROVER_ADDRESS = '/?as=approver'

/**
 * Returns whether a browser may become the second approver, to try the demo with two browsers. Only with the emulator, and only if the
 * server listens on this machine. The address alone is not enough, because a proxy may forward requests of other machines.
 */
export function mayChooseRoles({ host, geminiKey }: Settings): boolean {
  return geminiKey === undefined && isLoopback(host)
}

function isLoopback(host: string): boolean {
  return ['127.0.0.1', '::1', 'localhost'].includes(host)
}

/** Whether the inspector may show what the model was asked: to the people at this machine, and by the only instance. */
export function mayInspectModel({ host, databaseUrl }: Settings): boolean {
  const isProduction = process.env['NODE_ENV'] === 'production'
  return !isProduction && databaseUrl === undefined && isLoopback(host)
}

/** The browsers that opened the page with the code. */
export interface Approvers {
  add(principalId: string): void | Promise<void>
  has(principalId: string): boolean | Promise<boolean>
}

/** Only a script reaches this number. */
const MAX_APPROVERS = 10_000

/** Keeps the approvers of one process in memory. Above the limit, new browsers do not get the role. Those that have it keep it. */
export function createApprovers(): Approvers {
  const approvers = new Set<string>()
  return {
    add: (principalId) => {
      if (approvers.size < MAX_APPROVERS) approvers.add(principalId)
    },
    has: (principalId) => approvers.has(principalId),
  }
}

/** Letters and digits that are easy to distinguish. */
const ALPHABET = 'ABCDEFGHJKMNPQRSTVWXYZ23456789'

/** Creates the code that is printed at startup: 49 bits, in two groups. */
export function createApproverCode(): string {
  const letters = Array.from({ length: 10 }, () => ALPHABET[randomInt(ALPHABET.length)])
  return `${letters.slice(0, 5).join('')}-${letters.slice(5).join('')}`
}

/**
 * Returns an `authenticate` that gives the approver role to browsers that opened the page with the code, until the server stops. The
 * path alone is not enough, because any site can send a browser there.
 */
export function choosingRoles(
  authenticate: Authenticate,
  code: string,
  approvers: Approvers,
): Authenticate {
  return async (request) => {
    const principal = await authenticate(request)
    if (!principal || principal.roles !== undefined) return principal
    if (isApproverRequest(request, code)) await approvers.add(principal.id)
    return (await approvers.has(principal.id))
      ? { ...principal, roles: [APPROVER_ROLE] }
      : principal
  }
}

function isApproverRequest({ method, url }: AuthenticateRequest, code: string): boolean {
  const { pathname, searchParams } = url
  if (method !== 'GET' || pathname !== '/' || searchParams.get('as') !== 'approver') return false
  return timingSafeEqual(digest(searchParams.get('code') ?? ''), digest(code))
}

/** Hashes a code as a person types it. `timingSafeEqual` needs inputs of equal length. */
function digest(code: string): Buffer {
  const plain = code.toUpperCase().replace(/[^A-Z\d]/g, '')
  return createHash('sha256').update(plain).digest()
}

/** Returns a short name of a browser for other people: they cannot tell long random ids apart. */
export function nameBrowser(principalId: string, language: Language): string | undefined {
  if (!principalId.startsWith('browser-')) return undefined
  const short = createHash('sha256').update(principalId).digest('hex').slice(0, 4)
  return `${GUEST[language]} ${short.toUpperCase()}`
}

const GUEST = { en: 'Guest', ja: 'ゲスト' } as const satisfies Record<Language, string>

/**
 * Returns as whom the holder of a link decides. The person who requested a payment may ask another person with a link: in this demo
 * they vouch for each other. An application would let only certain people create links.
 */
export function issueLink({ principal, approval, step }: LinkRequest): LinkHolder | undefined {
  const isRequester = principal.id === approval.chat.principalId
  const needsApprover = step.roles.includes(APPROVER_ROLE)
  return isRequester && needsApprover ? { roles: [APPROVER_ROLE] } : undefined
}

type IssueLink = NonNullable<BridgeOptions['approvalLinks']>['issue']
type LinkRequest = Parameters<IssueLink>[0]
type LinkHolder = Awaited<ReturnType<IssueLink>>
