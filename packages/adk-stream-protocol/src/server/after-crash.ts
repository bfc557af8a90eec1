import type { Approval } from '../approvals/approval.ts'
import { isRefusal } from '../approvals/refusal.ts'
import type { Backend } from './backend.ts'
import { writeEnding } from './cancel-open.ts'

const LOST = 'the server stopped before the question was part of the conversation'

/**
 * Settles an approval about which its conversation asks nothing: it shows the ending already, or the message is gone, or the
 * process died between the ledger and the session. What was approved is withdrawn then, for nothing is there to go on with.
 */
export async function settleUnasked(backend: Backend, approval: Approval): Promise<void> {
  const { ledger } = backend
  const { id, chat, toolCallId, state, requestedAt } = approval
  if (state.name !== 'approved') return ledger.noteTold(chat, [toolCallId])
  // Another process may be about to store the question. It has less time for that than a dead one for its lease.
  if (Date.now() - requestedAt < ledger.leaseMs) return
  const cancelled = await ledger.cancel(id, LOST)
  if (!isRefusal(cancelled)) await writeEnding(backend, cancelled)
}
