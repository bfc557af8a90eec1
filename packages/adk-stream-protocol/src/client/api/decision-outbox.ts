import { type Backoff, delayBefore } from '../../shared/backoff.ts'
import { Listeners } from '../../shared/collections.ts'
import type { PendingApproval } from '../../protocol/server-views.ts'
import { AdkError, isAway } from '../adk-error.ts'
import { DECISION_CANCELLED } from '../connection/transport.ts'
import type { DecisionGiven } from '../connection/transport.ts'
import { waitForNextAttempt, type ConnectionState } from '../connection/connection-state.ts'

/**
 * A decision that waits for the connection.
 *
 * @inline
 */
export interface WaitingDecision {
  readonly decision: DecisionGiven
  /** Whether it was sent before, without a response: it may have arrived, and cannot be taken back. */
  readonly mayHaveArrived: boolean
}

/**
 * Decisions that wait for the connection, by approval id. The map stays the same until it changes.
 *
 * @inline
 */
export type WaitingDecisions = ReadonlyMap<string, WaitingDecision>

/** No decision waits. One object for all, so that pages do not render again for another empty map. */
export const NONE_WAITING: WaitingDecisions = new Map()

/**
 * A decision that waited for the connection and that the server refused then.
 *
 * @inline
 */
export interface RefusedDecision {
  readonly approvalId: string
  readonly decision: DecisionGiven
  readonly error: unknown
  /** What it was about. Undefined until it is read, and if it cannot be read. */
  readonly approval?: PendingApproval
}

export const NONE_REFUSED: readonly RefusedDecision[] = []

interface OutboxApi {
  readonly decide: (
    approvalId: string,
    decision: DecisionGiven,
    decidedAs: string | undefined,
  ) => Promise<string>
  /** Returns the tag of the principal of the page, as far as responses have shown it. */
  readonly readPrincipal: () => string | undefined
  readonly readApproval: (approvalId: string) => Promise<{ readonly approval: PendingApproval }>
  /** Whether requests are known not to reach the server. */
  readonly isOffline: () => boolean
  readonly backoff: Required<Backoff>
}

/** A request that contains only decisions. */
interface DecisionRequest<Result> {
  readonly approvalIds: readonly string[]
  /** Aborted by `stop()`. */
  readonly signal: AbortSignal
  /** Sends the request. `isRepeated`: an earlier attempt may have arrived. */
  readonly send: (isRepeated: boolean) => Promise<Result>
  readonly report: (state: ConnectionState, mayHaveArrived: boolean) => void
}

interface KeptRequest {
  readonly approvalIds: readonly string[]
  readonly cancelled: AbortController
  mayHaveArrived: boolean
}

/**
 * Keeps decisions in the memory of the page while the server cannot be reached, and sends each of them once it can. A decision may then be
 * sent a second time: the server counts it once, and returns its outcome (AP130).
 */
export class DecisionOutbox {
  readonly #api: OutboxApi
  readonly #kept = new Set<KeptRequest>()
  readonly #listeners = new Listeners()
  #waiting = NONE_WAITING
  #refused = NONE_REFUSED

  constructor(api: OutboxApi) {
    this.#api = api
  }

  get waiting(): WaitingDecisions {
    return this.#waiting
  }

  /** The decisions that were refused after they had waited, until they are dismissed. The form that sent them may be closed. */
  get refused(): readonly RefusedDecision[] {
    return this.#refused
  }

  /** Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void {
    return this.#listeners.add(listener)
  }

  /** Resolves with the state of the approval. Rejects if the server rejects the decision, or if it was taken back. */
  async send(approvalId: string, decision: DecisionGiven): Promise<string> {
    let hasWaited = false
    // When the connection is back, another person may have signed in.
    const decidedAs = this.#api.readPrincipal()
    const decide = (): Promise<string> => this.#api.decide(approvalId, decision, decidedAs)
    try {
      return await this.keep({
        approvalIds: [approvalId],
        // Nothing aborts a decision but `cancel`: it outlives the component that showed its form.
        signal: new AbortController().signal,
        send: (isRepeated) => (isRepeated ? this.#repeat(approvalId, decision, decide) : decide()),
        report: ({ state }, mayHaveArrived) => {
          hasWaited ||= state === 'lost'
          this.#show(approvalId, state === 'lost' ? { decision, mayHaveArrived } : undefined)
        },
      })
    } catch (error) {
      if (hasWaited && error !== DECISION_CANCELLED)
        void this.#noteRefusal({ approvalId, decision, error })
      throw error
    } finally {
      this.#show(approvalId, undefined)
    }
  }

  /**
   * Sends a request with decisions, as soon as the server can be reached. Resolves with the response. Rejects if the server rejects the
   * request, and with `DECISION_CANCELLED` if it was taken back.
   */
  async keep<Result>(request: DecisionRequest<Result>): Promise<Result> {
    const { approvalIds, signal, send, report } = request
    const kept = { approvalIds, cancelled: new AbortController(), mayHaveArrived: false }
    this.#kept.add(kept)
    try {
      if (this.#api.isOffline()) await this.#untilReachable(request, kept)
      for (let attempt = 0; ; attempt += 1) {
        try {
          const isRepeated = kept.mayHaveArrived
          kept.mayHaveArrived = true
          report({ state: 'connecting' }, true)
          return await send(isRepeated)
        } catch (error) {
          const isRefused = !(error instanceof TypeError) && !isAway(error)
          if (isRefused || signal.aborted) throw error
          await this.#untilReachable(request, kept, attempt)
        }
      }
    } finally {
      this.#kept.delete(kept)
    }
  }

  async #untilReachable(
    { approvalIds: [id = ''], signal, report }: DecisionRequest<unknown>,
    { cancelled, mayHaveArrived }: KeptRequest,
    firstAttempt = 0,
  ): Promise<void> {
    const { backoff, readApproval } = this.#api
    const ended = AbortSignal.any([signal, cancelled.signal])
    for (let attempt = firstAttempt; ; attempt += 1) {
      const delay = delayBefore(Math.min(attempt, backoff.attempts), backoff)
      const retryAt = Date.now() + delay
      report({ state: 'lost', attempt: attempt + 1, retryAt }, mayHaveArrived)
      await waitForNextAttempt(delay, ended)
      const isReached = !ended.aborted && (await readApproval(id).then(() => true, isResponse))
      // CL800: what may have arrived is not taken back by `stop()`.
      if (mayHaveArrived) signal.throwIfAborted()
      if (ended.aborted) throw DECISION_CANCELLED
      if (isReached) return
    }
  }

  /** Takes back a decision that was not sent. Returns false if there is none, or if it may have arrived. */
  cancel(approvalId: string): boolean {
    const found = [...this.#kept].find(({ approvalIds }) => approvalIds.includes(approvalId))
    if (!found || found.mayHaveArrived) return false
    found.cancelled.abort()
    return true
  }

  /** Forgets a refused decision. The person has seen why it was refused. */
  dismiss(approvalId: string): void {
    const others = this.#refused.filter((refused) => refused.approvalId !== approvalId)
    if (others.length !== this.#refused.length) this.#showRefused(others)
  }

  async #noteRefusal(refused: RefusedDecision): Promise<void> {
    const { approvalId } = refused
    this.#showRefused([...this.#refused, refused])
    const read = await this.#api.readApproval(approvalId).catch(() => undefined)
    if (read && this.#refused.includes(refused))
      this.#showRefused(
        this.#refused.map((each) =>
          each === refused ? { ...refused, approval: read.approval } : each,
        ),
      )
  }

  #showRefused(refused: readonly RefusedDecision[]): void {
    this.#refused = refused.length === 0 ? NONE_REFUSED : refused
    this.#listeners.call()
  }

  /** Sends a decision again. If the first attempt has arrived, the server rejects the second one, and the outcome is that of the first. */
  async #repeat(
    approvalId: string,
    decision: DecisionGiven,
    decide: () => Promise<string>,
  ): Promise<string> {
    try {
      return await decide()
    } catch (error) {
      const code = error instanceof AdkError ? error.code : undefined
      if (code !== 'approval-voted' && code !== 'approval-decided') throw error
      const { state } = (await this.#api.readApproval(approvalId)).approval
      if ((state === 'denied') === decision.approved) throw error
      return state
    }
  }

  #show(approvalId: string, waiting: WaitingDecision | undefined): void {
    if (!waiting && !this.#waiting.has(approvalId)) return
    const others = [...this.#waiting].filter(([id]) => id !== approvalId)
    const all = waiting ? [...others, [approvalId, waiting] as const] : others
    this.#waiting = all.length === 0 ? NONE_WAITING : new Map(all)
    this.#listeners.call()
  }
}

/** Whether the bridge responded with an error, and not a proxy without a server behind it. */
function isResponse(error: unknown): boolean {
  return error instanceof AdkError && error.code !== 'unavailable'
}
