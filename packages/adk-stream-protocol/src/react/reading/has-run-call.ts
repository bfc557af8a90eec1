import type { UIMessage } from 'ai'

import { type Approval, readApprovals } from './approval.ts'
import { type Call, isCall } from './call.ts'

type ReplyMessage = Pick<UIMessage, 'role' | 'parts'>

/** Returns the reply to the last user message. A live reply may consist of several messages. */
export function lastReply<Message extends ReplyMessage>(messages: readonly Message[]): Message[] {
  return messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1)
}

/** Returns whether a call of the last reply ran or may have run. Regenerating that reply would repeat the call and hide the first one. */
export function hasRunCall(messages: readonly ReplyMessage[]): boolean {
  return calls(messages).some(([call, approval]) => mayHaveRun(call, approval))
}

/** Like `hasRunCall`, for calls that a person approved. An application may repeat calls that need no approval. */
export function hasRunApprovedCall(messages: readonly ReplyMessage[]): boolean {
  return calls(messages).some(([call, approval]) => approval && mayHaveRun(call, approval))
}

function calls(messages: readonly ReplyMessage[]): [Call, Approval | undefined][] {
  return lastReply(messages).flatMap((message) => {
    const approvals = readApprovals(message)
    return message.parts
      .filter(isCall)
      .map((call): [Call, Approval | undefined] => [call, approvals.get(call.toolCallId)])
  })
}

const NEVER_RAN: ReadonlySet<unknown> = new Set<Approval['state']>([
  'denied',
  'expired',
  'cancelled',
])

function mayHaveRun(call: Call, approval: Approval | undefined): boolean {
  if (NEVER_RAN.has(approval?.state)) return false
  switch (call.state) {
    case 'input-streaming':
    case 'output-denied':
      return false
    case 'approval-requested':
      // The approval part may report a decision that the call's state does not show yet.
      return approval?.state !== 'requested'
    case 'approval-responded':
      return call.approval.approved
    case 'input-available':
    case 'output-available':
    case 'output-error':
      return true
  }
}
