import type { Approval } from '../../approvals/approval.ts'
import type { AuditRecord } from '../../approvals/audit-entry.ts'
import { currentStep } from '../../approvals/next-approval.ts'
import type { Principal } from '../auth/authenticate.ts'

/** Returns the view of an approval for a principal that may see it. */
export function viewApproval(approval: Approval, principal: Principal): Record<string, unknown> {
  const { id, chat, messageId, toolCallId, toolName, args, terms, requestedAt, deadline } = approval
  const { state, votes } = approval
  const { hint, title, severity, icon, payload, chain } = terms
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
export function viewRecord(
  { at, event }: AuditRecord,
  { toolName, chat }: Approval,
  principal: Principal,
): Record<string, unknown> {
  // ER3: only the log contains the error that a tool threw.
  if (event.type === 'failed') return { at, ...event, error: `The tool ${toolName} failed.` }
  if (chat.principalId === principal.id) return { at, ...event }
  // Other approvers see neither the conversation nor the result of the call (AP140).
  if (event.type === 'succeeded') return { at, type: event.type }
  if (event.type !== 'requested') return { at, ...event }
  const { messageId: _messageId, toolCallId: _toolCallId, ...shown } = event
  return { at, ...shown }
}
