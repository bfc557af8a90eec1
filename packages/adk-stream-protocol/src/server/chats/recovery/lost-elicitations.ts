import type { Approval } from '../../../approvals/approval.ts'
import type { Ledger } from '../../../approvals/ledger.ts'
import { isElicitation } from '../../../calls/elicitation-terms.ts'
import type { LazyBackend } from '../backend.ts'

const LOST = 'the server that ran the call has stopped'
const PAGE = 100

/** Cancels questions of MCP servers whose process has crashed, at an interval. */
export class LostElicitations {
  readonly #backend: LazyBackend
  #sweptAt = -Infinity

  constructor(backend: LazyBackend) {
    this.#backend = backend
  }

  async sweep(): Promise<void> {
    const { ledger } = await this.#backend.get()
    // A process that crashed keeps its chats locked for as long as its lease.
    if (performance.now() - this.#sweptAt < ledger.leaseMs) return
    this.#sweptAt = performance.now()
    for (let after: string | undefined; ;) {
      const pending = await ledger.list({
        states: ['requested'],
        kind: 'elicitation',
        limit: PAGE,
        ...(after !== undefined && { after }),
      })
      // A store of an application may not know the kind.
      for (const approval of pending.filter(isElicitation)) await cancelIfLost(ledger, approval)
      after = pending.at(-1)?.id
      if (pending.length < PAGE) return
    }
  }
}

/** Cancels a question if no process runs the call that asked it. */
export async function cancelIfLost(ledger: Ledger, approval: Approval): Promise<void> {
  const { id, chat, toolCallId, liveWorker } = approval
  if (liveWorker === ledger.worker) return
  // A turn locks its chat for as long as it runs, and a live session has a lock of its own.
  if ((await ledger.locks.listLockedByOthers(chat.principalId)).includes(chat.chatId)) return
  if (await ledger.locks.isLiveElsewhere(chat)) return
  await ledger.cancel(id, LOST)
  await ledger.markReported(chat, [toolCallId])
}

/** Records that the conversation shows how a question ended. The call that asked it, or the end of its turn, has shown it. */
export async function endElicitation(ledger: Ledger, approval: Approval): Promise<void> {
  const { state, chat, toolCallId } = approval
  if (state.name === 'approved' || state.name === 'requested') return cancelIfLost(ledger, approval)
  await ledger.markReported(chat, [toolCallId])
}
