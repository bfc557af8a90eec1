import type { Translation } from '../adk/translation.ts'
import type { Approval, ApprovalChat } from '../approvals/approval.ts'
import { isRefusal } from '../approvals/refusal.ts'
import type { Message, MessagePart } from '../protocol/message.ts'
import { isDecided } from './answer-turn.ts'
import type { Backend } from './backend.ts'
import { writeEnding } from './cancel-open.ts'

/** The approvals of a conversation that were decided while it still shows their questions: whoever followed them died. */
export async function findUntold(
  { ledger }: Backend,
  messages: readonly Message[],
): Promise<Approval[]> {
  const asked = messages.flatMap(({ parts }) => parts.flatMap(questionOf))
  const found = await Promise.all(asked.map((id) => ledger.get(id)))
  return found.flatMap((approval) => (approval && isDecided(approval) ? [approval] : []))
}

const LOST = 'the server stopped before the question was part of the conversation'

/**
 * Withdraws what was approved although its turn holds no question about it: the process died between the ledger and the session,
 * so there is nothing that the decision could answer.
 */
export async function withdrawLost(
  { host, ledger }: Backend,
  chat: ApprovalChat,
  { messageId, calls }: { messageId: string; calls: Translation['calls'] | undefined },
): Promise<void> {
  for (const approval of await ledger.list({ chat, states: ['approved'], limit: 100 })) {
    const isAsked = calls?.get(approval.toolCallId)?.state === 'asked'
    // Another process may be about to store the question. It has less time for that than a dead one for its lease.
    const isRecent = Date.now() - approval.requestedAt < ledger.leaseMs
    if (approval.messageId !== messageId || isAsked || isRecent) continue
    const cancelled = await ledger.cancel(approval.id, LOST)
    if (!isRefusal(cancelled)) await writeEnding({ host }, chat, cancelled)
  }
}

function questionOf(part: MessagePart): string[] {
  return 'state' in part && part.state === 'approval-requested' ? [part.approval.id] : []
}
