import { useEffect, useRef } from 'react'

import { type Call, readApprovals, readCalls } from '../chat/approval.ts'
import type { Conversation } from '../chat/conversation.ts'
import type { Message } from '../chat/message.ts'
import { isBrowserTool } from '../tools/browser-tools.ts'
import { runCall } from '../tools/run-call.ts'

/** Runs the calls of the last message that are for this page, each of them once. */
export function useBrowserTools(
  conversation: Conversation,
  last: Message | undefined,
  busy: boolean,
): void {
  const begun = useRef(new Set<string>())
  useEffect(() => {
    if (last?.role !== 'assistant') return
    for (const call of findCallsToRun(last, busy)) {
      if (begun.current.has(call.toolCallId)) continue
      begun.current.add(call.toolCallId)
      // A tool that fails is an answer too; what is left is a page that is going away.
      runCall(conversation, call).catch(() => undefined)
    }
  }, [conversation, last, busy])
}

function findCallsToRun(message: Message, busy: boolean): Call[] {
  const approvals = readApprovals(message)
  return readCalls(message).filter((call) => {
    if (!isBrowserTool(call)) return false
    if (call.state === 'approval-responded') return call.approval.approved
    // Until the stream has ended, more may come: a question about this very call.
    if (busy) return false
    const decision = approvals.get(call.toolCallId)?.state
    if (call.state === 'input-available') return decision !== 'requested'
    // It was approved elsewhere.
    return call.state === 'approval-requested' && decision === 'approved'
  })
}
