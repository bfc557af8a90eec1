import { randomUUID } from 'node:crypto'

import * as z from 'zod'

import type { Decider } from '../../approvals/deciders.ts'
import type { ShownDelegation } from '../../protocol/delegations.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { Digest } from '../../protocol/read-responses.ts'
import { withoutUndefined } from '../../shared/collections.ts'
import { toDecider } from '../../server/chats/decisions/decision-results.ts'
import type { Principal } from '../../server/auth/authenticate.ts'
import type { Reply } from '../../server/http/exchange.ts'
import { checkInput, readJson, reply } from '../../server/http/exchange.ts'
import type { AuthenticatedRequest, Route } from '../../server/http/http-router.ts'
import { listPeople, viewApproval } from '../../server/routes/approval-routes.ts'
import type { Store } from '../../store/store.ts'
import { requirePart } from '../../store/store.ts'
import type { PersonalRecord, PersonalRecordStore } from '../../store/tables/personal-records.ts'
import type { Core } from '../module.ts'
import { byDelegate, DELEGATION_KIND, mayDecideFor } from './next-delegation.ts'
import { readGiver } from './stored-delegates.ts'

/**
 * Options of delegation.
 *
 * @inline
 */
export interface DelegationOptions {
  /** Whether a person may name another one, by the id of the principal. The delegate decides with the roles that the giver has now. */
  readonly allow: (from: Principal, to: string) => boolean | Promise<boolean>
  /** The longest time, in ms. Default: 30 days. */
  readonly maxMs?: number
}

const MONTH_MS = 30 * 24 * 3_600_000
/** How many delegations a person can give at the same time. */
const MAX_GIVEN = 20
/** How many approvals of another person are listed. */
const MAX_LISTED = 100

/** The routes of delegations: give, list and end them, and decide in the place of another person. */
export function delegationRoutes(
  { backend, decisions, limits, findNames }: Core,
  { allow, maxMs = MONTH_MS }: DelegationOptions,
): readonly Route[] {
  const kind = DELEGATION_KIND

  const open = async () => {
    const { store, appName, ...rest } = await backend.get()
    return {
      ...rest,
      records: recordsOf(store),
      ownerOf: (principalId: string) => ({ appName, principalId }),
    }
  }

  const toShown = async (found: readonly PersonalRecord[]): Promise<ShownDelegation[]> => {
    const names = await findNames(
      found.flatMap(({ principalId, about }) => [principalId, about ?? '']),
    )
    const person = (id: string) => ({ id, ...withoutUndefined({ name: names.get(id) }) })
    return found.map(({ id, principalId, about = '', at, expiresAt }) => ({
      id,
      from: person(principalId),
      to: person(about),
      at,
      ...withoutUndefined({ expiresAt }),
    }))
  }

  const list = async ({ principal }: AuthenticatedRequest): Promise<Reply> => {
    const { records, ownerOf } = await open()
    const own = ownerOf(principal.id)
    const given = await toShown(await records.list(own, kind))
    const received = await toShown(await records.listAbout(own, kind))
    return reply(200, { given, received })
  }

  const give = async ({ principal, exchange }: AuthenticatedRequest): Promise<Reply> => {
    const { to, forMs } = checkInput(GiveBody, await readJson(exchange, limits), BAD_GIVE)
    if (to === principal.id || forMs > maxMs || !(await allow(principal, to)))
      throw new ProtocolError('not-allowed', { message: MAY_NOT_GIVE })
    const { records, ownerOf } = await open()
    const owner = ownerOf(principal.id)
    const before = await records.list(owner, kind)
    // Naming the same person again replaces the delegation.
    const same = before.find(({ about }) => about === to)
    if (!same && before.length >= MAX_GIVEN)
      throw new ProtocolError('not-allowed', { message: MAY_NOT_GIVE })
    const id = same?.id ?? randomUUID()
    const body = JSON.stringify({ roles: toDecider(principal).roles })
    await records.put(owner, { kind, id, about: to, body, forMs })
    await records.removeOld()
    const stored = (await records.list(owner, kind)).filter((each) => each.id === id)
    const [delegation] = await toShown(stored)
    return reply(201, { delegation })
  }

  const end = async ({ principal, id }: AuthenticatedRequest): Promise<Reply> => {
    const { records, ownerOf } = await open()
    const own = ownerOf(principal.id)
    const received = (await records.listAbout(own, kind)).find((each) => each.id === id)
    const owner = received ? ownerOf(received.principalId) : own
    if (!(await records.remove(owner, { kind, id }))) throw new ProtocolError('unknown-record')
    return reply(200, { ended: true })
  }

  /** Returns the person in whose place a principal decides. */
  const findGiver = async ({ principal, id }: AuthenticatedRequest): Promise<Decider> => {
    const { records, ownerOf } = await open()
    const received = await records.listAbout(ownerOf(principal.id), kind)
    const found = received.find((each) => each.id === id)
    if (!found) throw new ProtocolError('unknown-record')
    return readGiver(found)
  }

  const listApprovals = async (request: AuthenticatedRequest): Promise<Reply> => {
    const giver = await findGiver(request)
    const { principal } = request
    const { ledger, refresh } = await backend.get()
    const waiting = await ledger.list({ waitsFor: giver, limit: MAX_LISTED })
    const asked = waiting.filter((approval) => mayDecideFor(approval, giver, principal.id))
    const names = await findNames(asked.flatMap(listPeople))
    const approvals = await Promise.all(
      asked.map(async (approval) => {
        const current = await refresh(approval, giver.id)
        const view = viewApproval(current.approval, principal, { ...current, names })
        const { whyNot: _whyNot, ...shown } = view
        return { ...shown, mayDecide: true }
      }),
    )
    return reply(200, { approvals })
  }

  const decide = async (request: AuthenticatedRequest): Promise<Reply> => {
    const { principal, exchange, id } = request
    const body = checkInput(DecideBody, await readJson(exchange, limits), BAD_DECIDE)
    const giver = await findGiver(request)
    const { approvalId, approved, reason, preview } = body
    const decision = { approvalId, approved, ...withoutUndefined({ reason, preview }) }
    const person = { id: giver.id, roles: [...giver.roles] }
    const means = byDelegate({ id, delegate: principal.id })
    const decided = await decisions.decideById(person, decision, means)
    return reply(200, { approval: { id: approvalId, state: decided.state.name } })
  }

  return [
    { method: 'GET', path: '/delegations', handle: list },
    { method: 'POST', path: '/delegations', handle: give },
    { method: 'DELETE', path: '/delegations/:id', handle: end },
    { method: 'GET', path: '/delegations/:id/approvals', handle: listApprovals },
    { method: 'POST', path: '/delegations/:id/approvals', handle: decide },
  ]
}

export const recordsOf = (store: Store): PersonalRecordStore =>
  requirePart(store, 'personalRecords', '`delegation` needs')

const GiveBody = z.strictObject({
  to: z.string().min(1).max(256),
  forMs: z.number().min(60_000),
})

const BAD_GIVE =
  'Send { "to": the id of the person, "forMs": the time in ms, at least one minute }.'

const DecideBody = z.strictObject({
  approvalId: z.string().min(1).max(256),
  approved: z.boolean(),
  reason: z.string().max(2_000).optional(),
  preview: Digest.optional(),
})

const BAD_DECIDE =
  'Send { "approvalId", "approved": true or false, "reason"?: text, "preview"?: the digest of the preview that was shown }.'

const MAY_NOT_GIVE = 'You cannot name this person, or not for so long.'
