import type { ChatRef } from '../../../shared/chat-ref.ts'
import { keepNewest } from '../../../shared/collections.ts'
import type { RunOutcome } from '../../../turns/run-turn.ts'
import type { TurnRegistry } from '../../../turns/turn-registry.ts'
import { isStoreFailure, readError } from '../../http/exchange.ts'
import type { Backend } from '../backend.ts'
import { toAppChat } from '../backend.ts'

/** A run whose session is to be repaired. */
interface UnsettledRun {
  readonly chat: ChatRef
  readonly outcome: RunOutcome
  /** Whether another server may continue its turn. */
  readonly isLeft: boolean
}

const MAX_UNSETTLED = 1_000

/** TU883: the runs whose session could not be repaired at their end, because the store failed. */
export class UnsettledRuns {
  /** By message. */
  readonly #runs = new Map<string, UnsettledRun>()

  /** Repairs the session after a run. If the store fails, `settleLeft` tries again. */
  async settle(backend: Backend, run: UnsettledRun): Promise<void> {
    const { chat, outcome, isLeft } = run
    try {
      await backend.host.endings.settle(toAppChat(backend, chat), outcome, isLeft)
    } catch (error) {
      if (isStoreFailure(readError(error).code)) this.#add(run)
      throw error
    }
  }

  /** Repairs the sessions of earlier runs, under the lock of their chats. Those of chats that are not free follow later. */
  async settleLeft(
    backend: Backend,
    turns: Pick<TurnRegistry, 'start'>,
    onError: (error: unknown) => void,
  ): Promise<void> {
    // A run that fails again is added for the next time, not for this loop.
    const left = [...this.#runs]
    for (const [messageId, run] of left) {
      const { chat, outcome, isLeft } = run
      this.#runs.delete(messageId)
      try {
        const { settled } = await turns.start(chat, messageId, {
          onlyIfFree: true,
          background: true,
          isReplay: true,
          prepare: () => backend.host.endings.settleLate(toAppChat(backend, chat), outcome, isLeft),
          run: async ({ log }) => log.end(),
        })
        await settled
      } catch (error) {
        const { code } = readError(error)
        if (code === 'turn-running' || isStoreFailure(code)) this.#add(run)
        else onError(error)
      }
    }
  }

  #add(run: UnsettledRun): void {
    this.#runs.set(run.outcome.unstored.messageId, run)
    keepNewest(this.#runs, MAX_UNSETTLED)
  }
}
