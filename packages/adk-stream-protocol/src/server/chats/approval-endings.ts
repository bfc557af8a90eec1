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

const LOST = 'the server stopped before the question was part of the conversation'

/** Approvals about which their conversations ask nothing. */
export class OrphanedApprovals {
  /** When an approval was first found so, by the clock of this process. */
  readonly #foundAt = new Map<string, number>()

  /**
   * Settles an approval about which its conversation asks nothing: it shows the ending already, or the message is gone, or the
   * process died between the ledger and the session. What was approved is withdrawn then, for nothing is there to go on with.
   */
  async reconcileOrphan(backend: Backend, approval: Approval): Promise<void> {
    const { ledger } = backend
    const { id, chat, toolCallId, state } = approval
    if (state.name !== 'approved') return ledger.markReported(chat, [toolCallId])
    // Another process may be about to store the question. It has less time for that than a dead one for its lease.
    if (!this.#isLeft(id, ledger.leaseMs)) return
    const cancelled = await ledger.cancel(id, LOST)
    this.#foundAt.delete(id)
    if (!isRefusal(cancelled)) await writeEnding(backend, cancelled)
  }

  /** Whether an approval was found without its question for as long as a lease. */
  #isLeft(id: string, leaseMs: number): boolean {
    const foundAt = this.#foundAt.get(id) ?? performance.now()
    this.#foundAt.set(id, foundAt)
    const [oldest] = this.#foundAt.keys()
    if (this.#foundAt.size > MAX_FOUND && oldest !== undefined) this.#foundAt.delete(oldest)
    return performance.now() - foundAt >= leaseMs
  }
}

const MAX_FOUND = 10_000
