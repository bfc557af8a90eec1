import { randomBytes, randomUUID } from 'node:crypto'

import { z } from 'zod'

import type { Approval } from '../../approvals/approval.ts'
import type { ApprovalLink } from '../../approvals/link.ts'
import { isRefusal, type Refusal } from '../../approvals/approval.ts'
import { currentStep } from '../../approvals/deciders.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { Digest } from '../../protocol/read-responses.ts'
import { withoutUndefined } from '../../shared/collections.ts'
import type { Principal } from '../../server/auth/authenticate.ts'
import { toDecider, toError } from '../../server/chats/decisions/decision-results.ts'
import type { Reply } from '../../server/http/exchange.ts'
import { checkInput, readJson, reply } from '../../server/http/exchange.ts'
import type {
  AnonymousRequest,
  AuthenticatedRequest,
  Route,
} from '../../server/http/http-router.ts'
import type { Core } from '../module.ts'
import { BAD_LINK, byLink, createLink, findBySecret, hashSecret, openLink } from './next-link.ts'
import { listPeople, viewApproval } from '../../server/routes/approval-routes.ts'

/**
 * Options for links with which people decide without an account.
 *
 * @inline
 */
export interface ApprovalLinkOptions {
  /**
   * Returns as whom the holder of a link decides, or undefined if the principal may not create a link for this approval. The policy
   * must allow that person to decide the current step. Without `principalId`, the holder is a person of their own with these roles.
   */
  readonly issue: (request: LinkRequest) => LinkHolder | undefined | Promise<LinkHolder | undefined>
  /** How long a link is valid, in ms, at most until the deadline of the approval. Default: 10 minutes. */
  readonly expiresMs?: number
}

/**
 * A request for a link.
 *
 * @inline
 */
interface LinkRequest {
  /** Who asks for the link. They may see the approval. */
  readonly principal: Principal
  readonly approval: Pick<Approval, 'id' | 'toolName' | 'args' | 'chat' | 'votes'>
  /** The roles and principals that may decide the current step. */
  readonly step: { readonly roles: readonly string[]; readonly principals: readonly string[] }
}

/**
 * As whom the holder of a link decides.
 *
 * @inline
 */
interface LinkHolder {
  readonly principalId?: string
  readonly roles?: readonly string[]
}

const DEFAULT_EXPIRES_MS = 10 * 60_000

/** The routes of links: create one, open it, read the approval, and decide it once. */
export function approvalLinkRoutes(core: Core, links: ApprovalLinkOptions): readonly Route[] {
  const { backend, decisions, limits } = core

  const create = async ({ principal, id }: AuthenticatedRequest): Promise<Reply> => {
    const { ledger } = await backend.get()
    const by = toDecider(principal)
    const approval = await ledger.get(id, by)
    if (!approval) throw new ProtocolError('unknown-approval')
    const step = approval.terms.chain[currentStep(approval) ?? -1]
    const { roles, principals } = step ?? { roles: [], principals: [] }
    const holder = await links.issue({ principal, approval, step: { roles, principals } })
    if (!holder) throw new ProtocolError('not-allowed', { message: MAY_NOT_CREATE })
    const token = createSecret()
    const linkId = randomUUID()
    const { expiresMs = DEFAULT_EXPIRES_MS } = links
    const link = {
      id: linkId,
      tokenHash: hashSecret(token),
      as: { id: holder.principalId ?? `link-${linkId}`, roles: holder.roles ?? [] },
      by: principal.id,
    }
    const created = await ledger.note(id, createLink({ by, link, expiresMs }))
    if (isRefusal(created)) throw toError(created)
    const { expiresAt } = findBySecret(created, token, 'token') ?? {}
    return reply(201, { approvalId: id, token, expiresAt })
  }

  const open = async ({ principal, id, exchange }: AnonymousRequest): Promise<Reply> => {
    const { token } = checkInput(OpenBody, await readJson(exchange, limits))
    const { ledger } = await backend.get()
    const key = createSecret()
    const browser = principal && { browser: principal.id }
    const opened = await ledger.note(id, openLink({ token, keyHash: hashSecret(key), ...browser }))
    if (isRefusal(opened)) throw toLinkError(opened)
    return reply(200, { key, ...(await viewByLink(core, opened, key)) })
  }

  const read = async ({ id, exchange }: AnonymousRequest): Promise<Reply> => {
    const { key } = checkInput(ReadBody, await readJson(exchange, limits))
    const { approval } = await findByLink(core, id, key)
    return reply(200, await viewByLink(core, approval, key))
  }

  const decide = async ({ principal, id, exchange }: AnonymousRequest): Promise<Reply> => {
    const body = checkInput(DecideBody, await readJson(exchange, limits))
    const { key, approved, reason, preview } = body
    const { link } = await findByLink(core, id, key)
    const decision = { approvalId: id, approved, ...withoutUndefined({ reason, preview }) }
    const means = byLink(link.id, principal?.id)
    const decided = await decisions.decideById(link.as, decision, means)
    return reply(200, { approval: { id, state: decided.state.name } })
  }

  return [
    { method: 'POST', path: '/approvals/:id/links', handle: create },
    { method: 'POST', path: '/approvals/:id/link/open', access: 'anonymous', handle: open },
    {
      method: 'POST',
      path: '/approvals/:id/link/read',
      access: 'anonymous',
      handle: read,
      isServedWhileClosing: true,
    },
    { method: 'POST', path: '/approvals/:id/link/decide', access: 'anonymous', handle: decide },
  ]
}

/** Returns a pending approval and the opened link with this key. Throws if the link can no longer be used. */
async function findByLink(
  { backend }: Core,
  id: string,
  key: string,
): Promise<{ readonly approval: Approval; readonly link: ApprovalLink }> {
  const { ledger, store } = await backend.get()
  const approval = await ledger.get(id)
  const link = approval && findBySecret(approval, key, 'key')
  const isPending = approval?.state.name === 'requested'
  const isOpen = isPending && link && link.expiresAt > (await store.approvals.now())
  if (!isOpen) throw new ProtocolError('unknown-approval', { message: BAD_LINK })
  return { approval, link }
}

/** Returns an approval as the holder of a link sees it. */
async function viewByLink(
  { backend, findNames }: Core,
  approval: Approval,
  key: string,
): Promise<Record<string, unknown>> {
  const link = findBySecret(approval, key, 'key')
  if (!link) throw new ProtocolError('unknown-approval', { message: BAD_LINK })
  const { refresh } = await backend.get()
  const current = await refresh(approval, link.as.id)
  const names = await findNames([...listPeople(approval), link.by])
  const sender = names.get(link.by)
  return {
    approval: viewApproval(current.approval, link.as, { ...current, names }),
    expiresAt: link.expiresAt,
    from: { id: link.by, ...(sender !== undefined && { name: sender }) },
  }
}

const MAY_NOT_CREATE = 'You may not create a link for this approval.'

const Secret = z.string().min(1).max(100)
const OpenBody = z.strictObject({ token: Secret })
const ReadBody = z.strictObject({ key: Secret })
const DecideBody = z.strictObject({
  key: Secret,
  approved: z.boolean(),
  reason: z.string().max(2_000).optional(),
  preview: Digest.optional(),
})

/** 256 random bits. */
function createSecret(): string {
  return randomBytes(32).toString('base64url')
}

/** Returns the error for a link that cannot be opened. A stranger learns nothing about the approval. */
function toLinkError(refusal: Refusal): ProtocolError {
  if (refusal.refused === 'already-counted') return toError(refusal)
  return refusal.refused === 'not-allowed'
    ? new ProtocolError('not-allowed', { message: SAME_PERSON })
    : new ProtocolError('unknown-approval', { message: BAD_LINK })
}

const SAME_PERSON =
  'This browser belongs to a person who already takes part in this approval. Another person must open the link.'
