import { z } from 'zod'

import type { Approval, ApprovalStateName } from '../../approvals/approval.ts'
import { findEvidence, isRefusal } from '../../approvals/approval.ts'
import type { AuditRecord } from '../../approvals/audit-entry.ts'
import { currentStep, isDecidedAloneBy, whyUndecidable } from '../../approvals/deciders.ts'
import { assessRisk } from '../../approvals/risk.ts'
import { readArgumentsJsonSchema } from '../../calls/arguments-schema.ts'
import { UncheckedObject } from '../../protocol/client-input.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { pickQuestion } from '../../protocol/question-terms.ts'
import { Digest } from '../../protocol/read-responses.ts'
import type { EditPreview, ShownPerson } from '../../protocol/server-views.ts'
import { collect } from '../../shared/async.ts'
import { readError } from '../../store/read-error.ts'
import { withoutUndefined } from '../../shared/collections.ts'
import type { Principal } from '../auth/authenticate.ts'
import type { Backend, LazyBackend } from '../chats/backend.ts'
import type { ApprovalDecisions } from '../chats/decisions/approval-decisions.ts'
import { toDecider, toError } from '../chats/decisions/decision-results.ts'
import type { PreviewResult } from '../../approvals/policy-previews.ts'
import { checkApproved } from '../chats/host/policy-checks.ts'
import type { CurrentApproval } from '../chats/host/policy-checks.ts'
import type { Reply } from '../http/exchange.ts'
import { checkInput, readJson, reply } from '../http/exchange.ts'
import type { AuthenticatedRequest, Route } from '../http/http-router.ts'
import type { FindNames } from './principal-names.ts'
import type { BridgeLimits } from '../settings/limits.ts'

export interface ApprovalRoutesOptions {
  readonly backend: LazyBackend
  readonly decisions: Pick<ApprovalDecisions, 'decideById'>
  readonly limits: BridgeLimits
  readonly findNames: FindNames
}

/** The routes of approvals, for inboxes, bots and phones: list, read, decide, and withdraw a vote. */
export function approvalRoutes(options: ApprovalRoutesOptions): readonly Route[] {
  const { backend, decisions, limits, findNames } = options

  const view = async (approval: Approval, principal: Principal): Promise<unknown> =>
    viewApproval(approval, principal, {
      preview: { state: 'none' },
      names: await findNames(listPeople(approval)),
    })

  const show = async ({ principal, id }: AuthenticatedRequest): Promise<Reply> => {
    const opened = await backend.get()
    const { ledger, refresh } = opened
    const approval = await ledger.get(id, toDecider(principal))
    if (!approval) throw new ProtocolError('unknown-approval')
    const records = await collect(ledger.audit({ approvalId: id }))
    const history = records.map((record) => viewRecord(record, approval, principal))
    const schema = await readSchema(approval, opened)
    const current = {
      ...(await refresh(approval, principal.id)),
      schema,
      names: await findNames(listPeople(approval)),
    }
    return reply(200, { approval: viewApproval(current.approval, principal, current), history })
  }

  const decide = async ({ principal, id, exchange }: AuthenticatedRequest): Promise<Reply> => {
    const body = checkInput(DecisionBody, await readJson(exchange, limits), BAD_BODY)
    const { approved, reason, args, payload, preview, offer } = body
    const decided = await decisions.decideById(principal, {
      approvalId: id,
      approved,
      ...withoutUndefined({ reason, editedArgs: args, payload, preview, offer }),
    })
    return reply(200, { approval: await view(decided, principal) })
  }

  /** Each decision stands for itself: one that is refused does not prevent the others. */
  const decideTogether = async ({ principal, exchange }: AuthenticatedRequest): Promise<Reply> => {
    const body = checkInput(DecisionsBody, await readJson(exchange, limits), BAD_DECISIONS)
    const { ledger } = await backend.get()
    // At the same time: the effect of one call may change the preview of the next.
    const results = await Promise.all(
      body.decisions.map(async ({ id, approved, reason, preview: seen }) => {
        try {
          const approval = await ledger.get(id, toDecider(principal))
          const { severity, misleading = false } = approval ? assessRisk(approval) : {}
          if (approved && (severity === 'high' || misleading))
            throw new ProtocolError('not-allowed', { message: ALONE })
          const decided = await decisions.decideById(principal, {
            approvalId: id,
            approved,
            ...withoutUndefined({ reason, preview: seen }),
          })
          return { id, state: decided.state.name }
        } catch (thrown) {
          return { id, ...readError(thrown).toJSON() }
        }
      }),
    )
    return reply(200, { results })
  }

  const preview = async ({ principal, id, exchange }: AuthenticatedRequest): Promise<Reply> => {
    const { args } = checkInput(EditBody, await readJson(exchange, limits), BAD_EDIT)
    const opened = await backend.get()
    const by = toDecider(principal)
    const approval = await opened.ledger.get(id, by)
    if (!approval) throw new ProtocolError('unknown-approval')
    const { state, terms } = approval
    if (state.name !== 'requested') throw toError({ refused: 'already-decided', state })
    if (!isDecidedAloneBy(terms, by)) throw toError({ refused: 'not-editable' })
    const sent = { approvalId: id, approved: true, editedArgs: args }
    const refusal = await checkApproved(opened, approval, { sent, by, limits })
    if (refusal) throw toError(refusal)
    const { preview: made, severity } = await opened.refresh({ ...approval, args }, principal.id)
    const edited = { args, terms: { ...terms, ...withoutUndefined({ severity }) } }
    return reply(200, viewPreview(edited, made))
  }

  const withdraw = async ({ principal, id }: AuthenticatedRequest): Promise<Reply> => {
    const { ledger } = await backend.get()
    const result = await ledger.withdraw(id, toDecider(principal))
    if (isRefusal(result)) throw toError(result)
    return reply(200, { approval: await view(result, principal) })
  }

  return [
    { method: 'GET', path: '/approvals', handle: (request) => listApprovals(options, request) },
    { method: 'POST', path: '/approvals', handle: decideTogether },
    { method: 'GET', path: '/approvals/:id', handle: show },
    { method: 'POST', path: '/approvals/:id', handle: decide },
    { method: 'POST', path: '/approvals/:id/preview', handle: preview },
    { method: 'DELETE', path: '/approvals/:id/vote', handle: withdraw },
  ]
}

/** Lists the approvals that wait for a principal, or those that it may see and that a query selects. */
async function listApprovals(
  { backend, findNames }: ApprovalRoutesOptions,
  { principal, exchange }: AuthenticatedRequest,
): Promise<Reply> {
  const query = Object.fromEntries(exchange.url.searchParams)
  const {
    limit,
    after,
    state: states,
    tool: toolName,
    requester,
  } = checkInput(Query, query, BAD_QUERY)
  const filter = withoutUndefined({ states, toolName, requester })
  const opened = await backend.get()
  const { ledger, refresh } = opened
  const reader = toDecider(principal)
  if (after !== undefined && !(await ledger.get(after, reader))) {
    throw new ProtocolError('bad-request', { message: 'There is no page after this approval.' })
  }
  // One extra entry shows whether there is a next page.
  const paging = { limit: limit + 1, ...(after !== undefined && { after }) }
  const isFiltered = Object.keys(filter).length > 0
  const found = isFiltered
    ? await ledger.listVisible({ reader, ...filter, ...paging })
    : await ledger.list({ waitsFor: reader, ...paging })
  if (!found) throw new ProtocolError('bad-request', { message: NO_HISTORY })
  const page = found.slice(0, limit)
  const approvals = await Promise.all(
    page.map(async (approval) => ({
      ...(await refresh(approval, principal.id)),
      schema: await readSchema(approval, opened),
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

const DecisionBody = z.strictObject({
  approved: z.boolean(),
  reason: z.string().max(2_000).optional(),
  args: UncheckedObject.optional(),
  payload: z.unknown().optional(),
  preview: Digest.optional(),
  offer: Digest.optional(),
})

const BAD_BODY =
  'Send { "approved": true or false, "reason"?: text, "args"?: edited arguments, "payload"?: the value that the tool asked for, "preview"?: the digest of the preview that was shown, "offer"?: the id of a grant that the approval offers }.'

const MAX_TOGETHER = 50

const DecisionsBody = z.strictObject({
  decisions: z
    .array(
      z.strictObject({
        id: z.string().min(1).max(256),
        approved: z.boolean(),
        reason: z.string().max(2_000).optional(),
        preview: Digest.optional(),
      }),
    )
    .min(1)
    .max(MAX_TOGETHER)
    .refine((given) => new Set(given.map(({ id }) => id)).size === given.length),
})

const BAD_DECISIONS = `Send { "decisions": [{ "id", "approved": true or false, "reason"?: text, "preview"?: the digest of the preview that was shown }] }, for 1 to ${MAX_TOGETHER} different approvals.`

const ALONE =
  'This call is of high severity, or has a value that could mislead. Approve it by itself.'

const EditBody = z.strictObject({ args: UncheckedObject })

const BAD_EDIT = 'Send { "args": edited arguments }.'

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

const BAD_QUERY = `\`limit\` is a number from 1 to ${MAX_PAGE}, \`after\` the \`next\` of the previous page, \`state\` \`all\`, \`decided\`, or names of states separated by commas, \`tool\` the name of a tool, and \`requester\` the id of a principal.`

const NO_HISTORY = 'The store of this server lists pending approvals only.'

/** Returns the schema for a form that edits the arguments of a pending call. Several approvers cannot edit, and nobody a call of the page. */
export async function readSchema(
  { chat, toolName, terms, state }: Approval,
  { findTool, isPageTool }: Pick<Backend, 'findTool' | 'isPageTool'>,
): Promise<Record<string, unknown> | undefined> {
  const [step, ...rest] = terms.chain
  if (state.name !== 'requested' || step?.count !== 1 || rest.length > 0) return undefined
  if (terms.kind !== undefined || isPageTool(toolName)) return undefined
  // The agent of an old chat may not exist any more (RQ184). The approval can still be read.
  const tool = await findTool(chat, toolName).catch(() => undefined)
  return tool && readArgumentsJsonSchema(tool)
}

/** What the ledger does not contain about an approval. */
interface Current extends Pick<CurrentApproval, 'preview'> {
  /** The JSON Schema of the arguments, if one person can edit them. */
  readonly schema?: Record<string, unknown> | undefined
  /** The names of the people that the approval mentions, by principal id. */
  readonly names: ReadonlyMap<string, string>
}

/** Returns the view of an approval for a principal that may see it. */
export function viewApproval(
  approval: Approval,
  principal: Principal,
  { preview: made, schema, names }: Current,
): Record<string, unknown> {
  const { id, chat, messageId, toolCallId, toolName, args, terms, requestedAt, deadline } = approval
  const { state, votes } = approval
  const { hint, title, icon, payload, path, offers } = terms
  const { chain, userText } = terms
  const own = chat.principalId === principal.id
  const whyNot = whyUndecidable(approval, toDecider(principal))
  const toPerson = (personId: string): ShownPerson => {
    const name = names.get(personId)
    return {
      id: personId,
      ...(name !== undefined && { name }),
      ...(personId === principal.id && { own: true }),
    }
  }
  return {
    id,
    state: state.name,
    toolName,
    args,
    ...withoutUndefined({
      hint,
      title,
      icon,
      payload,
    }),
    ...pickQuestion(terms),
    ...viewPreview(approval, made),
    ...withoutUndefined({ argsSchema: schema, path }),
    requestedAt,
    deadline,
    approvals: { given: votes.length, needed: chain.reduce((sum, step) => sum + step.count, 0) },
    // A person votes once (AP17), and can then only withdraw the vote.
    voted: votes.some(({ principalId }) => principalId === principal.id),
    // Increases with every change: of two responses, the one with the higher version is newer.
    version: approval.version,
    step: currentStep(approval) ?? chain.length,
    ...('reason' in state && state.reason !== undefined && { reason: state.reason }),
    ...('editedArgs' in state && state.editedArgs && { editedArgs: state.editedArgs }),
    ...('payload' in state && { approvedPayload: state.payload }),
    // Only the chat's owner sees where the call was made. Other approvers see the call but not the conversation.
    ...(own && { chatId: chat.chatId, messageId, toolCallId }),
    ...(own && offers && { offers }),
    own,
    requester: toPerson(chat.principalId),
    ...withoutUndefined({ userText }),
    votes: votes.map(({ principalId, step, at, linkBy, delegate }) => ({
      by: toPerson(principalId),
      step,
      at,
      ...(linkBy !== undefined && { linkBy: toPerson(linkBy) }),
      ...(delegate !== undefined && { delegate: toPerson(delegate) }),
    })),
    steps: chain.map(({ count, principals, roles }, index) => ({
      needed: count,
      given: votes.filter((vote) => vote.step === index).length,
      principals: principals.map(toPerson),
      roles,
    })),
    ...viewEnd(approval, toPerson),
    ...findEvidence(approval),
    ...(own && 'receipt' in state && state.receipt && { receipt: state.receipt }),
    mayDecide: whyNot === undefined,
    ...withoutUndefined({ whyNot }),
  }
}

/** Returns the risk of a call, its preview, and whether there should be one. */
function viewPreview(call: Pick<Approval, 'args' | 'terms'>, made: PreviewResult): EditPreview {
  return {
    ...assessRisk(call, made.state === 'made' ? made.preview : undefined),
    ...(made.state !== 'none' && { hasPreview: true }),
    ...(made.state === 'made' && { preview: made.preview }),
  }
}

/** Returns when an approval reached its present state, and who approved or denied it. */
function viewEnd(
  { state, votes }: Approval,
  toPerson: (id: string) => ShownPerson,
): { readonly at?: number; readonly by?: readonly ShownPerson[] } {
  if (state.name === 'requested') return {}
  const { at } = state
  if (state.name === 'denied') return { at, by: [toPerson(state.by)] }
  if (state.name === 'expired' || state.name === 'cancelled') return { at }
  return { at, by: votes.map(({ principalId }) => toPerson(principalId)) }
}

/** Returns the view of an audit entry for a principal that may see the approval. */
function viewRecord(
  { at, event }: AuditRecord,
  { toolName, chat }: Approval,
  principal: Principal,
): Record<string, unknown> {
  const isOwn = chat.principalId === principal.id
  // ER3: only the log contains the error that a tool threw. A failure that the result reports is part of the result.
  if (event.type === 'failed' && !(isOwn && 'output' in event))
    return { at, type: event.type, error: `The tool ${toolName} failed.` }
  if (isOwn) return { at, ...event }
  // Other approvers see neither the conversation nor the result of the call (AP140).
  if (event.type === 'succeeded') return { at, type: event.type }
  if (event.type !== 'requested') return { at, ...event }
  const { messageId: _messageId, toolCallId: _toolCallId, ...shown } = event
  return { at, ...shown }
}

/** Returns the ids of the people that an approval mentions: its requester, its voters and its approvers. */
export function listPeople({ chat, votes, terms, state }: Approval): string[] {
  return [
    chat.principalId,
    ...('by' in state ? [state.by] : []),
    ...votes.flatMap(({ principalId, delegate }) => [principalId, delegate ?? principalId]),
    ...terms.chain.flatMap(({ principals }) => principals),
  ]
}
