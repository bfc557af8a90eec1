import { z } from 'zod'

import type { Approval, ApprovalStateName } from '../../approvals/approval.ts'
import { isRefusal } from '../../approvals/approval.ts'
import { readArgumentsJsonSchema } from '../../calls/arguments-schema.ts'
import { UncheckedObject } from '../../protocol/client-input.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { Digest } from '../../protocol/read-responses.ts'
import { withoutUndefined } from '../../shared/collections.ts'
import type { Principal } from '../auth/authenticate.ts'
import type { Backend, LazyBackend } from '../chats/backend.ts'
import type { ChatService } from '../chats/chat-service.ts'
import { toDecider, toError } from '../chats/decisions/decision-results.ts'
import type { FindNames } from './approval-views.ts'
import type { Reply } from '../http/exchange.ts'
import { readJson, reply } from '../http/exchange.ts'
import type { AuthenticatedRequest, Route } from '../http/http-router.ts'
import type { BridgeLimits } from '../limits.ts'
import { listPeople, viewApproval, viewRecord } from './approval-views.ts'

export interface ApprovalRoutesOptions {
  readonly backend: LazyBackend
  readonly chats: ChatService
  readonly limits: BridgeLimits
  readonly findNames: FindNames
}

/** The routes of approvals, for inboxes, bots and phones: list, read, decide, and withdraw a vote. */
export function approvalRoutes(options: ApprovalRoutesOptions): readonly Route[] {
  const { backend, chats, limits, findNames } = options

  const view = async (approval: Approval, principal: Principal): Promise<unknown> =>
    viewApproval(approval, principal, {
      preview: { state: 'none' },
      names: await findNames(listPeople(approval)),
    })

  const list = async ({ principal, exchange }: AuthenticatedRequest): Promise<Reply> => {
    const { limit, after, ...filter } = readQuery(exchange.url)
    const { ledger, refresh, findTool } = await backend.get()
    const reader = toDecider(principal)
    if (after !== undefined && !(await ledger.get(after, reader))) {
      throw new ProtocolError('bad-request', { message: 'There is no page after this approval.' })
    }
    // One extra entry shows whether there is a next page.
    const paging = { limit: limit + 1, ...(after !== undefined && { after }) }
    const isFiltered = Object.values(filter).some((value) => value !== undefined)
    const found = isFiltered
      ? await ledger.listVisible({ reader, ...toVisibleFilter(filter), ...paging })
      : await ledger.list({ waitsFor: reader, ...paging })
    if (!found) throw new ProtocolError('bad-request', { message: NO_HISTORY })
    const page = found.slice(0, limit)
    const approvals = await Promise.all(
      page.map(async (approval) => ({
        ...(await refresh(approval, principal.id)),
        schema: await readSchema(approval, findTool),
      })),
    )
    const next = found.length > limit ? page.at(-1)?.id : undefined
    const known = await findNames(page.flatMap(listPeople))
    return reply(200, {
      approvals: approvals.map((current) =>
        viewApproval(current.approval, principal, { ...current, names: known }),
      ),
      ...(next !== undefined && { next }),
    })
  }

  const show = async ({ principal, id }: AuthenticatedRequest): Promise<Reply> => {
    const { ledger, refresh, findTool } = await backend.get()
    const approval = await ledger.get(id, toDecider(principal))
    if (!approval) throw new ProtocolError('unknown-approval')
    const history = []
    for await (const record of ledger.audit({ approvalId: id }))
      history.push(viewRecord(record, approval, principal))
    const schema = await readSchema(approval, findTool)
    const current = {
      ...(await refresh(approval, principal.id)),
      schema,
      names: await findNames(listPeople(approval)),
    }
    return reply(200, { approval: viewApproval(current.approval, principal, current), history })
  }

  const decide = async ({ principal, id, exchange }: AuthenticatedRequest): Promise<Reply> => {
    const body = DecisionBody.safeParse(await readJson(exchange, limits))
    if (!body.success) throw new ProtocolError('bad-request', { message: BAD_BODY })
    const { approved, reason, args, payload, preview } = body.data
    const decided = await chats.decide(principal, {
      approvalId: id,
      approved,
      ...withoutUndefined({ reason, editedArgs: args, payload, preview }),
    })
    return reply(200, { approval: await view(decided, principal) })
  }

  const withdraw = async ({ principal, id }: AuthenticatedRequest): Promise<Reply> => {
    const { ledger } = await backend.get()
    const result = await ledger.withdraw(id, toDecider(principal))
    if (isRefusal(result)) throw toError(result)
    return reply(200, { approval: await view(result, principal) })
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
  preview: Digest.optional(),
})

const BAD_BODY =
  'Send { "approved": true or false, "reason"?: text, "args"?: edited arguments, "payload"?: the value that the tool asked for, "preview"?: the digest of the preview that was shown }.'

const MAX_PAGE = 100

const STATES = {
  requested: true,
  approved: true,
  denied: true,
  expired: true,
  cancelled: true,
  executing: true,
  succeeded: true,
  failed: true,
  unknown: true,
} as const satisfies Record<ApprovalStateName, true>

// All keys are names of states.
const STATE_NAMES = Object.keys(STATES) as readonly ApprovalStateName[]

const NAMED_STATES: Readonly<Record<string, readonly ApprovalStateName[]>> = {
  all: STATE_NAMES,
  decided: STATE_NAMES.filter((name) => name !== 'requested'),
}

const StateFilter = z.string().transform((text, context): readonly ApprovalStateName[] => {
  const named = Object.hasOwn(NAMED_STATES, text) ? NAMED_STATES[text] : undefined
  if (named) return named
  const words = text.split(',')
  const states = STATE_NAMES.filter((name) => words.includes(name))
  if (states.length !== words.length) context.addIssue('not a state')
  return states
})

const Query = z.object({
  limit: z.coerce.number().int().min(1).max(MAX_PAGE).default(MAX_PAGE),
  after: z.string().min(1).max(256).optional(),
  state: StateFilter.optional(),
  tool: z.string().min(1).max(256).optional(),
  requester: z.string().min(1).max(256).optional(),
})

function readQuery({ searchParams }: URL): z.infer<typeof Query> {
  const query = Query.safeParse(Object.fromEntries(searchParams))
  if (query.success) return query.data
  const message = `\`limit\` is a number from 1 to ${MAX_PAGE}, \`after\` the \`next\` of the previous page, \`state\` \`all\`, \`decided\`, or names of states separated by commas, \`tool\` the name of a tool, and \`requester\` the id of a principal.`
  throw new ProtocolError('bad-request', { message })
}

function toVisibleFilter({
  state,
  tool,
  requester,
}: Pick<z.infer<typeof Query>, 'state' | 'tool' | 'requester'>) {
  return withoutUndefined({ states: state, toolName: tool, requester })
}

const NO_HISTORY = 'The store of this server lists pending approvals only.'

/** Returns the schema for a form that edits the arguments of a pending call. Several approvers cannot edit. */
async function readSchema(
  { chat, toolName, terms, state }: Approval,
  findTool: Backend['findTool'],
): Promise<Record<string, unknown> | undefined> {
  const [step, ...rest] = terms.chain
  if (state.name !== 'requested' || step?.count !== 1 || rest.length > 0) return undefined
  if (terms.kind !== undefined) return undefined
  // The agent of an old chat may not exist any more (RQ184). The approval can still be read.
  const tool = await findTool(chat, toolName).catch(() => undefined)
  return tool && readArgumentsJsonSchema(tool)
}
