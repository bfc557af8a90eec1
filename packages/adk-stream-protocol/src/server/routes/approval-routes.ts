import { z } from 'zod'

import type { Approval } from '../../approvals/approval.ts'
import type { AuditRecord } from '../../approvals/audit-entry.ts'
import { currentStep } from '../../approvals/next-approval.ts'
import { isRefusal } from '../../approvals/refusal.ts'
import { readArgumentsJsonSchema } from '../../calls/arguments-schema.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { UncheckedObject } from '../../protocol/raw-message.ts'
import { Digest } from '../../protocol/read-responses.ts'
import type { Principal } from '../auth/authenticate.ts'
import { toDecider, toError } from '../chats/approval-decisions.ts'
import type { Backend, LazyBackend } from '../chats/backend.ts'
import type { ChatService } from '../chats/chat-service.ts'
import type { CurrentApproval } from '../chats/policy-checks.ts'
import type { Reply } from '../http/exchange.ts'
import { reply } from '../http/exchange.ts'
import type { AuthenticatedRequest, Route } from '../http/http-router.ts'
import { readJson } from '../http/read-request.ts'
import type { BridgeLimits } from '../options.ts'

export interface ApprovalRoutesOptions {
  readonly backend: LazyBackend
  readonly chats: ChatService
  readonly limits: BridgeLimits
}

/** The routes of approvals, for inboxes, bots and phones: list, read, decide, and withdraw a vote. */
export function approvalRoutes(options: ApprovalRoutesOptions): readonly Route[] {
  const { backend, chats, limits } = options

  const list = async ({ principal, exchange }: AuthenticatedRequest): Promise<Reply> => {
    const { limit, after } = readPaging(exchange.url)
    const { ledger, refresh, findTool } = await backend.get()
    const waitsFor = toDecider(principal)
    if (after !== undefined && !(await ledger.get(after, waitsFor))) {
      throw new ProtocolError('bad-request', { message: 'There is no page after this approval.' })
    }
    // One extra entry shows whether there is a next page.
    const paging = { limit: limit + 1, ...(after !== undefined && { after }) }
    const found = await ledger.list({ waitsFor, ...paging })
    const page = found.slice(0, limit)
    const approvals = await Promise.all(
      page.map(async (approval) => ({
        ...(await refresh(approval, principal.id)),
        schema: await readSchema(approval, findTool),
      })),
    )
    const next = found.length > limit ? page.at(-1)?.id : undefined
    return reply(200, {
      approvals: approvals.map((current) => viewApproval(current.approval, principal, current)),
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
    const current = { ...(await refresh(approval, principal.id)), schema }
    return reply(200, { approval: viewApproval(current.approval, principal, current), history })
  }

  const decide = async ({ principal, id, exchange }: AuthenticatedRequest): Promise<Reply> => {
    const body = DecisionBody.safeParse(await readJson(exchange, limits))
    if (!body.success) throw new ProtocolError('bad-request', { message: BAD_BODY })
    const { approved, reason, args, payload, preview } = body.data
    const decided = await chats.decide(principal, {
      approvalId: id,
      approved,
      ...(reason !== undefined && { reason }),
      ...(args !== undefined && { editedArgs: args }),
      ...(payload !== undefined && { payload }),
      ...(preview !== undefined && { preview }),
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
  preview: Digest.optional(),
})

const BAD_BODY =
  'Send { "approved": true or false, "reason"?: text, "args"?: edited arguments, "payload"?: the value that the tool asked for, "preview"?: the digest of the preview that was shown }.'

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

/** What the ledger does not contain about an approval. */
interface Current extends Pick<CurrentApproval, 'preview'> {
  /** The JSON Schema of the arguments, if one person can edit them. */
  readonly schema?: Record<string, unknown> | undefined
}

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

/** Returns the view of an approval for a principal that may see it. */
function viewApproval(
  approval: Approval,
  principal: Principal,
  { preview: made, schema }: Current = { preview: { state: 'none' } },
): Record<string, unknown> {
  const { id, chat, messageId, toolCallId, toolName, args, terms, requestedAt, deadline } = approval
  const { state, votes } = approval
  const { hint, title, severity, icon, payload, kind, schema: answerSchema, chain } = terms
  const own = chat.principalId === principal.id
  return {
    id,
    state: state.name,
    toolName,
    args,
    ...(hint !== undefined && { hint }),
    ...(title !== undefined && { title }),
    ...(severity !== undefined && { severity }),
    ...(icon !== undefined && { icon }),
    ...(payload !== undefined && { payload }),
    ...(kind && { kind }),
    ...(answerSchema && { schema: answerSchema }),
    ...(made.state !== 'none' && { hasPreview: true }),
    ...(made.state === 'made' && { preview: made.preview }),
    ...(schema && { argsSchema: schema }),
    requestedAt,
    deadline,
    approvals: { given: votes.length, needed: chain.reduce((sum, step) => sum + step.count, 0) },
    // A person votes once (LG7), and can then only withdraw the vote.
    voted: votes.some(({ principalId }) => principalId === principal.id),
    // Increases with every change: of two responses, the one with the higher version is newer.
    version: approval.version,
    step: currentStep(approval) ?? chain.length,
    ...('reason' in state && state.reason !== undefined && { reason: state.reason }),
    ...('editedArgs' in state && state.editedArgs && { editedArgs: state.editedArgs }),
    ...('payload' in state && { approvedPayload: state.payload }),
    // Only the chat's owner sees where the call was made. Other approvers see the call but not the conversation.
    ...(own && { chatId: chat.chatId, messageId, toolCallId }),
    own,
  }
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
