import type { UIMessage } from 'ai'

import { type Approval, readApprovals } from './approval.ts'
import { type Call, isCall } from './call.ts'

type Spoken = Pick<UIMessage, 'role' | 'parts'>

/** All that was answered to the person's last message: a live answer may be several. */
export function lastAnswer<Message extends Spoken>(messages: readonly Message[]): Message[] {
  return messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1)
}

/** Whether a call of the last answer was done, or may have been. To make that answer anew would do it again, and hide that it was. */
export function hasActed(messages: readonly Spoken[]): boolean {
  return calls(messages).some(([call, approval]) => mayHaveRun(call, approval))
}

/** Whether that is so of a call that a person approved: what nobody is asked about is for the application to repeat. */
export function hasSpent(messages: readonly Spoken[]): boolean {
  return calls(messages).some(([call, approval]) => approval && mayHaveRun(call, approval))
}

function calls(messages: readonly Spoken[]): [Call, Approval | undefined][] {
  return lastAnswer(messages).flatMap((message) => {
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
      // It may have been decided where this message did not hear of it.
      return approval?.state !== 'requested'
    case 'approval-responded':
      return call.approval.approved
    case 'input-available':
    case 'output-available':
    case 'output-error':
      return true
  }
}
