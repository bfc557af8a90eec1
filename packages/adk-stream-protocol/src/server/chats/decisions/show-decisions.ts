import { describeEnding, toPendingNote } from '../../../agent/call-responses.ts'
import type { Approval } from '../../../approvals/approval.ts'
import { foldChunk } from '../../../protocol/fold-chunks.ts'
import type { DataParts, Message, ToolPart } from '../../../protocol/message.ts'
import type { AppChatRef } from '../../../shared/chat-ref.ts'
import type { Backend } from '../backend.ts'

/**
 * CV795: shows calls that wait in the stored messages as the ledger has them. A decision, or the end of an approval, may not be part of
 * the conversation yet: its turn has not resumed, or was stopped while the call ran. Changes the messages in place.
 */
export async function showDecisions(
  { ledger, isPageTool }: Pick<Backend, 'ledger' | 'isPageTool'>,
  chat: AppChatRef,
  messages: readonly Message[],
): Promise<void> {
  const waiting = messages.flatMap(findWaiting)
  if (waiting.length === 0) return
  const pending = new Set((await ledger.pendingOf(chat)).map(({ id }) => id))
  for (const { message, asked } of waiting) {
    const { approvalId, toolCallId } = asked
    if (pending.has(approvalId)) continue
    const approval = await ledger.findByCall(chat, toolCallId)
    if (approval?.id !== approvalId || approval.state.name === 'requested') continue
    // A page runs an approved tool of its own. It must not do so before the server has handed the call over.
    if (isApproved(approval) && isPageTool(approval.toolName)) continue
    showDecision(message, asked, approval)
  }
}

/** An approval request or a question that has no outcome in its message. */
interface Waiting {
  readonly message: Message
  readonly asked: DataParts['approval']
}

function findWaiting(message: Message): Waiting[] {
  return message.parts.flatMap((part) => {
    if (part.type !== 'data-approval' || !('data' in part)) return []
    // Only the bridge creates parts of this type.
    const asked = part.data as DataParts['approval']
    const call = findCall(message, asked.toolCallId)
    const waits = call?.state === 'approval-requested' || call?.state === 'input-available'
    return waits && asked.state === 'requested' ? [{ message, asked }] : []
  })
}

function findCall({ parts }: Message, toolCallId: string): ToolPart | undefined {
  return parts.find(
    (part): part is ToolPart => 'toolCallId' in part && part.toolCallId === toolCallId,
  )
}

/** Whether the call of an approval has run or may run. */
export function isApproved({ state: { name } }: Approval): boolean {
  return name === 'approved' || name === 'executing' || name === 'succeeded' || name === 'failed'
}

function showDecision(message: Message, asked: DataParts['approval'], approval: Approval): void {
  const { id, toolCallId, state } = approval
  const ending = isApproved(approval) ? undefined : describeEnding(approval)
  const data = { ...asked, ...(ending?.note ?? toPendingNote(approval)) }
  foldChunk(message, { type: 'data-approval', id, data })
  // AI SDK clients send a decision in this state again with the next one. The server accepts a repeated decision (AP13), but it would
  // reject one about an approval that ended undecided.
  if (!asked.kind && (!ending || state.name === 'denied')) showResponded(message, approval, !ending)
  else if (ending) {
    const errorText = String(ending.response['error'])
    foldChunk(message, { type: 'tool-output-error', toolCallId, errorText })
  } else if (data.approvedPayload !== undefined)
    foldChunk(message, { type: 'tool-output-available', toolCallId, output: data.approvedPayload })
}

/** Shows a call as decided. Its result follows. */
function showResponded(
  message: Message,
  { id, toolCallId, state }: Approval,
  approved: boolean,
): void {
  const call = findCall(message, toolCallId)
  if (!call || !('input' in call)) return
  const { type, input } = call
  const reason = 'reason' in state && state.reason !== undefined ? { reason: state.reason } : {}
  message.parts[message.parts.indexOf(call)] = {
    type,
    toolCallId,
    state: 'approval-responded',
    input,
    approval: { id, approved, ...reason },
  }
}
