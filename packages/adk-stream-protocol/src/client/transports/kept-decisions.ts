import type { Backoff } from '../../shared/backoff.ts'
import { delayBefore } from '../../shared/backoff.ts'
import { AdkError } from '../adk-error.ts'
import { waitForNextAttempt } from '../network-back.ts'
import type { ConnectionState } from './connection-state.ts'
import { DECISION_CANCELLED } from './response-channel.ts'

/** A request that contains only decisions. */
interface DecisionRequest<Result> {
  readonly approvalIds: readonly string[]
  /** Aborted by `stop()`. */
  readonly signal: AbortSignal
  /** Sends the request. `isRepeated`: an earlier attempt may have arrived. */
  readonly send: (isRepeated: boolean) => Promise<Result>
  readonly report: (state: ConnectionState) => void
}

interface Dependencies {
  /** Whether requests are known not to reach the server. */
  readonly isOffline: () => boolean
  /** Sends a request that changes nothing. */
  readonly probe: (approvalId: string) => Promise<unknown>
  readonly backoff: Required<Backoff>
}

interface KeptRequest {
  readonly approvalIds: readonly string[]
  readonly cancelled: AbortController
  mayHaveArrived: boolean
}

/**
 * Sends requests with decisions. A request that does not reach the server is kept until it does. It may then be sent a second time: the
 * server counts a repeated decision once, and returns its outcome (AP130).
 */
export class KeptDecisions {
  readonly #dependencies: Dependencies
  readonly #kept = new Set<KeptRequest>()

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  /** Resolves with the response. Rejects if the server rejects the request, and with `DECISION_CANCELLED` if it was taken back. */
  async send<Result>(request: DecisionRequest<Result>): Promise<Result> {
    const { approvalIds, signal, send, report } = request
    const kept = { approvalIds, cancelled: new AbortController(), mayHaveArrived: false }
    this.#kept.add(kept)
    try {
      if (this.#dependencies.isOffline()) await this.#untilReachable(request, kept)
      for (;;) {
        try {
          const isRepeated = kept.mayHaveArrived
          kept.mayHaveArrived = true
          report({ state: 'connecting' })
          return await send(isRepeated)
        } catch (error) {
          if (!(error instanceof TypeError) || signal.aborted) throw error
          await this.#untilReachable(request, kept)
        }
      }
    } finally {
      this.#kept.delete(kept)
    }
  }

  /** Takes back a decision that was not sent. Returns false if there is none, or if it may have arrived. */
  cancel(approvalId: string): boolean {
    const found = [...this.#kept].find(({ approvalIds }) => approvalIds.includes(approvalId))
    if (!found || found.mayHaveArrived) return false
    found.cancelled.abort()
    return true
  }

  async #untilReachable(
    { approvalIds: [id = ''], signal, report }: DecisionRequest<unknown>,
    { cancelled }: KeptRequest,
  ): Promise<void> {
    const { probe, backoff } = this.#dependencies
    const ended = AbortSignal.any([signal, cancelled.signal])
    for (let attempt = 0; ; attempt += 1) {
      const delay = delayBefore(Math.min(attempt, backoff.attempts), backoff)
      report({ state: 'lost', attempt: attempt + 1, retryAt: Date.now() + delay })
      await waitForNextAttempt(delay, ended)
      const isReached = !ended.aborted && (await probe(id).then(() => true, isResponse))
      if (ended.aborted) throw DECISION_CANCELLED
      if (isReached) return
    }
  }
}

/** Whether the bridge responded with an error, and not a proxy without a server behind it. */
function isResponse(error: unknown): boolean {
  return error instanceof AdkError && error.code !== 'unavailable'
}
