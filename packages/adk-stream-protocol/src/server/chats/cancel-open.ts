import type { Event } from '@google/adk'

import { describeEnding } from '../../agent/call-responses.ts'
import type { Approval, ApprovalChat } from '../../approvals/approval.ts'
import { isRefusal } from '../../approvals/refusal.ts'
import type { Backend } from './backend.ts'

const MOVED_ON = 'the person wrote something else'

/** Cancels all that waits in a chat, and writes it into the session, where the model and the client read it. */
export async function cancelPending(
  backend: Backend,
  chat: ApprovalChat,
  { isWritten = () => false }: { readonly isWritten?: (approval: Approval) => boolean } = {},
): Promise<void> {
  for (const approval of await backend.ledger.pendingOf(chat)) {
    const written = isWritten(approval)
    const cancelled = await backend.ledger.cancel(approval.id, MOVED_ON)
    if (!isRefusal(cancelled) && !written) await writeEnding(backend, cancelled)
  }
}

/** Writes the end of an approval that leads to no run into the session. */
export async function writeEnding(
  { host, ledger }: Pick<Backend, 'host' | 'ledger'>,
  approval: Approval,
): Promise<void> {
  const ending = describeEnding(approval)
  if (!ending) return
  const { chat, toolCallId: id, toolName: name, messageId } = approval
  const { response, note } = ending
  await host.append(chat, messageId, {
    content: { role: 'user', parts: [{ functionResponse: { id, name, response } }] },
    notes: { decided: [note] },
  })
  await ledger.markReported(chat, [id])
}

/** Events that begin with the cancellation of what waits. */
export async function* afterCancelling(
  cancel: () => Promise<void>,
  events: AsyncIterable<Event>,
): AsyncGenerator<Event> {
  await cancel()
  yield* events
}
