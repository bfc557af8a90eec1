import type { Approval } from '../../approvals/approval.ts'
import type { AuditRecord } from '../../approvals/audit-entry.ts'
import { currentStep } from '../../approvals/next-approval.ts'
import type { Principal } from '../auth/authenticate.ts'

/** An approval as somebody may see it who may know of it. */
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
    // A person votes once (LG7): whoever has voted waits for others, or takes the vote back.
    voted: votes.some(({ principalId }) => principalId === principal.id),
    // Counts the changes: of two answers, the one with the higher number is newer.
    version: approval.version,
    step: currentStep(approval) ?? chain.length,
    ...('reason' in state && state.reason !== undefined && { reason: state.reason }),
    ...('editedArgs' in state && state.editedArgs && { editedArgs: state.editedArgs }),
    ...('payload' in state && { approvedPayload: state.payload }),
    // Where the call was made is for the chat's owner alone; another approver knows what is asked, not the conversation.
    ...(own && { chatId: chat.chatId, messageId, toolCallId }),
    own,
  }
}

/** A line of an approval's history, as far as the approval itself may be seen. */
export function viewRecord(
  { at, event }: AuditRecord,
  { toolName, chat }: Approval,
  principal: Principal,
): Record<string, unknown> {
  // ER3: what a tool threw is for the log, here as in the chat.
  if (event.type === 'failed') return { at, ...event, error: `The tool ${toolName} failed.` }
  if (chat.principalId === principal.id) return { at, ...event }
  // Another approver decides about the call, and reads neither the conversation nor what the call gave (AP140).
  if (event.type === 'succeeded') return { at, type: event.type }
  if (event.type !== 'requested') return { at, ...event }
  const { messageId: _messageId, toolCallId: _toolCallId, ...shown } = event
  return { at, ...shown }
}
