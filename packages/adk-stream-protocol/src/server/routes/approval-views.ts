import type { Approval } from '../../approvals/approval.ts'
import { findReply } from '../../approvals/approval.ts'
import type { AuditRecord } from '../../approvals/audit-entry.ts'
import { currentStep, whyUndecidable } from '../../approvals/deciders.ts'
import type { ShownPerson } from '../../protocol/server-views.ts'
import { withoutUndefined } from '../../shared/collections.ts'
import type { Principal } from '../auth/authenticate.ts'
import { toDecider } from '../chats/decisions/decision-results.ts'
import type { CurrentApproval } from '../chats/decisions/policy-checks.ts'

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
  const { hint, title, severity, icon, payload, kind, schema: answerSchema, signIn, path } = terms
  const { chain, userText } = terms
  const reply = findReply(approval)
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
      severity,
      icon,
      payload,
      kind,
      schema: answerSchema,
      signIn,
    }),
    ...(made.state !== 'none' && { hasPreview: true }),
    ...(made.state === 'made' && { preview: made.preview }),
    ...withoutUndefined({ argsSchema: schema, path }),
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
    requester: toPerson(chat.principalId),
    ...withoutUndefined({ userText }),
    votes: votes.map(({ principalId, step, at, linkBy }) => ({
      by: toPerson(principalId),
      step,
      at,
      ...(linkBy !== undefined && { linkBy: toPerson(linkBy) }),
    })),
    steps: chain.map(({ count, principals, roles }, index) => ({
      needed: count,
      given: votes.filter((vote) => vote.step === index).length,
      principals: principals.map(toPerson),
      roles,
    })),
    ...viewEnd(approval, toPerson),
    ...withoutUndefined({ reply }),
    ...(own && 'receipt' in state && state.receipt && { receipt: state.receipt }),
    mayDecide: whyNot === undefined,
    ...withoutUndefined({ whyNot }),
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
export function viewRecord(
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
    ...votes.map(({ principalId }) => principalId),
    ...terms.chain.flatMap(({ principals }) => principals),
  ]
}

/** Returns the name of a principal for other people, or undefined if it has none. */
export type NamePrincipal = (
  principalId: string,
) => string | undefined | Promise<string | undefined>

/** Returns the names of principals. Leaves out a principal without a name, or whose name cannot be determined. */
export type FindNames = (principalIds: Iterable<string>) => Promise<ReadonlyMap<string, string>>

/** The maximum length of a name, in UTF-16 code units. */
const MAX_LENGTH = 200

/** Returns a function that looks up names with the application's `namePrincipal`. */
export function createNameLookup(
  namePrincipal: NamePrincipal | undefined,
  onError: (error: unknown) => void,
): FindNames {
  const find = async (id: string): Promise<[string, string][]> => {
    try {
      // The types of the application are not checked at run time.
      const name: unknown = await namePrincipal?.(id)
      return typeof name === 'string' && name !== '' ? [[id, name.slice(0, MAX_LENGTH)]] : []
    } catch (error) {
      onError(error)
      return []
    }
  }
  return async (principalIds) => {
    if (!namePrincipal) return new Map()
    const found = await Promise.all(Array.from(new Set(principalIds), find))
    return new Map(found.flat())
  }
}
