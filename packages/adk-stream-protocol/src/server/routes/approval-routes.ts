import { z } from 'zod'

import { isRefusal } from '../../approvals/refusal.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { UncheckedObject } from '../../protocol/raw-message.ts'
import type { ApprovalDecisions } from '../chats/approval-decisions.ts'
import { toDecider, toError } from '../chats/approval-decisions.ts'
import type { LazyBackend } from '../chats/backend.ts'
import type { Reply } from '../http/exchange.ts'
import { reply } from '../http/exchange.ts'
import { readJson } from '../http/read-request.ts'
import type { AuthenticatedRequest, Route } from '../http/route.ts'
import type { BridgeLimits } from '../options.ts'
import { viewApproval, viewRecord } from './approval-view.ts'

export interface ApprovalRoutesOptions {
  readonly backend: LazyBackend
  readonly decisions: ApprovalDecisions
  readonly limits: BridgeLimits
}

/** The routes of approvals, for inboxes, bots and phones: list, read, decide, and withdraw a vote. */
export function approvalRoutes(options: ApprovalRoutesOptions): readonly Route[] {
  const { backend, decisions, limits } = options

  const list = async ({ principal, exchange }: AuthenticatedRequest): Promise<Reply> => {
    const { limit, after } = readPaging(exchange.url)
    const { ledger, refreshHint } = await backend.get()
    const waitsFor = toDecider(principal)
    if (after !== undefined && !(await ledger.get(after, waitsFor))) {
      throw new ProtocolError('bad-request', { message: 'There is no page after this approval.' })
    }
    // One extra entry shows whether there is a next page.
    const paging = { limit: limit + 1, ...(after !== undefined && { after }) }
    const found = await ledger.list({ waitsFor, ...paging })
    const approvals = await Promise.all(found.slice(0, limit).map(refreshHint))
    const next = found.length > limit ? approvals.at(-1)?.id : undefined
    return reply(200, {
      approvals: approvals.map((approval) => viewApproval(approval, principal)),
      ...(next !== undefined && { next }),
    })
  }

  const show = async ({ principal, id }: AuthenticatedRequest): Promise<Reply> => {
    const { ledger, refreshHint } = await backend.get()
    const approval = await ledger.get(id, toDecider(principal))
    if (!approval) throw new ProtocolError('unknown-approval')
    const history = []
    for await (const record of ledger.audit({ approvalId: id }))
      history.push(viewRecord(record, approval, principal))
    const current = await refreshHint(approval)
    return reply(200, { approval: viewApproval(current, principal), history })
  }

  const decide = async ({ principal, id, exchange }: AuthenticatedRequest): Promise<Reply> => {
    const body = DecisionBody.safeParse(await readJson(exchange, limits))
    if (!body.success) throw new ProtocolError('bad-request', { message: BAD_BODY })
    const { approved, reason, args, payload } = body.data
    const decided = await decisions.decideById(principal, {
      approvalId: id,
      approved,
      ...(reason !== undefined && { reason }),
      ...(args !== undefined && { editedArgs: args }),
      ...(payload !== undefined && { payload }),
    })
    return reply(200, { approval: viewApproval(decided, principal) })
  }

  const withdraw = async ({ principal, id }: AuthenticatedRequest): Promise<Reply> => {
    const { ledger } = await backend.get()
    const result = await ledger.withdraw(id, toDecider(principal))
    if (isRefusal(result)) throw toError(result)
    return reply(200, { approval: viewApproval(result, principal) })
  }

  return [
    { method: 'GET', path: '/approvals', handle: list },
    { method: 'GET', path: '/approvals/:id', handle: show },
    { method: 'POST', path: '/approvals/:id', handle: decide },
    { method: 'DELETE', path: '/approvals/:id/vote', handle: withdraw },
  ]
}

const DecisionBody = z.strictObject({
  approved: z.boolean(),
  reason: z.string().max(2_000).optional(),
  args: UncheckedObject.optional(),
  payload: z.unknown().optional(),
})

const BAD_BODY =
  'Send { "approved": true or false, "reason"?: text, "args"?: edited arguments, "payload"?: the value that the tool asked for }.'

const MAX_PAGE = 100

const Paging = z.object({
  limit: z.coerce.number().int().min(1).max(MAX_PAGE).default(MAX_PAGE),
  after: z.string().min(1).max(256).optional(),
})

function readPaging({ searchParams }: URL): z.infer<typeof Paging> {
  const paging = Paging.safeParse(Object.fromEntries(searchParams))
  if (paging.success) return paging.data
  const message = `\`limit\` is a number from 1 to ${MAX_PAGE}, \`after\` the \`next\` of the previous page.`
  throw new ProtocolError('bad-request', { message })
}
