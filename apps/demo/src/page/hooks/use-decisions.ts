import { useCallback, useEffect, useState } from 'react'

import { type Decision, readApprovals, readCalls } from '../chat/approval.ts'
import { postDecision } from '../chat/approvals-api.ts'
import { loadChat } from '../chat/chat-api.ts'
import type { Conversation } from '../chat/conversation.ts'
import { catchUp } from '../chat/follow-chat.ts'
import type { TurnError } from '../chat/message.ts'
import { readRefusal } from '../chat/problem.ts'

/** Why the last decision about an approval was not accepted. */
export type Refusals = ReadonlyMap<string, TurnError>

const NONE: Refusals = new Map()

/** Takes decisions of the reader to the server. */
export function useDecisions(
  conversation: Conversation,
  error: Error | undefined,
  onApprovalsChanged: () => void,
) {
  const [refusals, setRefusals] = useState(NONE)
  const refuse = useCallback((approvalIds: readonly string[], refusal: TurnError) => {
    setRefusals((known) => new Map([...known, ...approvalIds.map((id) => [id, refusal] as const)]))
  }, [])
  const decide = useCallback(
    async (approvalId: string, decision: Decision): Promise<void> => {
      setRefusals((known) => new Map([...known].filter(([id]) => id !== approvalId)))
      const { chat, answers } = conversation
      if (canAnswerInChat(conversation, approvalId)) {
        const { approved, reason, args } = decision
        answers.edit(approvalId, args)
        await chat.addToolApprovalResponse({
          id: approvalId,
          approved,
          ...(reason !== undefined && { reason }),
        })
        return
      }
      const refusal = await postDecision(approvalId, decision)
      if (refusal) refuse([approvalId], refusal)
      onApprovalsChanged()
      // The server goes on by itself; where it does so at once, its event has come before this.
      await catchUp(conversation)
    },
    [conversation, refuse, onApprovalsChanged],
  )

  // The chat has failed, but what was refused is a decision: it is told where it was made, and can be made anew.
  const answered = answeredIn(conversation)
  const refused = error && answered.length > 0 ? readRefusal(error) : undefined
  useEffect(() => {
    if (!refused) return
    refuse(answered, refused)
    // While the server cannot be asked, the card stays as it is; the next event tries again.
    takeBack(conversation).catch(() => undefined)
    // The error is what happened; the rest is read from it.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [error])
  return { decide, refusals, refused }
}

/** The stock way is for the last message, and for one person: another's decision is not in it. */
function canAnswerInChat({ chat }: Conversation, approvalId: string): boolean {
  const last = chat.messages.at(-1)
  if (!last) return false
  const approval = [...readApprovals(last).values()].find((one) => one.approvalId === approvalId)
  return approval !== undefined && (approval.approvers ?? 1) === 1
}

function answeredIn({ chat }: Conversation): string[] {
  const last = chat.messages.at(-1)
  if (!last) return []
  return readCalls(last).flatMap((call) =>
    call.state === 'approval-responded' ? [call.approval.id] : [],
  )
}

async function takeBack({ chat }: Conversation): Promise<void> {
  const saved = await loadChat(chat.id)
  if (saved) chat.messages = saved.messages
  chat.clearError()
}
