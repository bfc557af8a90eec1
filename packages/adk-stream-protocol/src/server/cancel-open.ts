import type { Event } from '@google/adk'

import { describeEnding } from '../adk/approval-answers.ts'
import type { Approval, ApprovalChat } from '../approvals/approval.ts'
import { isRefusal } from '../approvals/refusal.ts'
import type { Backend } from './backend.ts'

const MOVED_ON = 'the person wrote something else'

/** Cancels all that waits in a chat, and writes it into the session, where the model and the client read it. */
export async function cancelPending(
  { host, ledger }: Backend,
  chat: ApprovalChat,
  { isWritten = () => false }: { readonly isWritten?: (approval: Approval) => boolean } = {},
): Promise<void> {
  for (const approval of await ledger.pendingOf(chat)) {
    const written = isWritten(approval)
    const cancelled = await ledger.cancel(approval.id, MOVED_ON)
    if (!isRefusal(cancelled) && !written) await writeEnding({ host }, chat, cancelled)
  }
}

/** Writes the end of an approval that leads to no run into the session. */
export async function writeEnding(
  { host }: Pick<Backend, 'host'>,
  chat: ApprovalChat,
  approval: Approval,
): Promise<void> {
  const ending = describeEnding(approval)
  if (!ending) return
  const { toolCallId: id, toolName: name, messageId } = approval
  const { response, note } = ending
  await host.append(chat, messageId, {
    content: { role: 'user', parts: [{ functionResponse: { id, name, response } }] },
    notes: { decided: [note] },
  })
}

/** Events that begin with the cancellation of what waits. */
export async function* afterCancelling(
  cancel: () => Promise<void>,
  events: AsyncIterable<Event>,
): AsyncGenerator<Event> {
  await cancel()
  yield* events
}
