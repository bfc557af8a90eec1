import type { Approval } from '../../../approvals/approval.ts'

/** How many approvals of one principal are resumed at once. */
const MAX_PER_PRINCIPAL = 4
/** The longest delay between two attempts, in sweeps. */
const MAX_SWEEPS = 16

interface Attempt {
  readonly approval: Approval
  readonly tries: number
  phase: 'queued' | 'running' | 'over'
  /** The earliest time of the next attempt, by the clock of this process. */
  notBefore: number
}

/**
 * The approvals that sweeps resume. Each approval is resumed by one attempt at a time, few of one principal run at once, and the delay
 * between attempts without progress doubles, so that stuck approvals do not delay others.
 */
export class RecoveryQueue {
  readonly #resume: (approval: Approval) => Promise<void>
  readonly #sweepMs: number
  readonly #clock: () => number
  readonly #attempts = new Map<string, Attempt>()

  /** `resume` resumes the turn of an approval until it ends, and never rejects. */
  constructor(
    resume: (approval: Approval) => Promise<void>,
    sweepMs: number,
    clock: () => number = () => performance.now(),
  ) {
    this.#resume = resume
    this.#sweepMs = sweepMs
    this.#clock = clock
  }

  /** Returns the ids of approvals that are being resumed or whose next attempt is not due. */
  deferredIds(): string[] {
    const now = this.#clock()
    const waiting: string[] = []
    for (const [id, { phase, notBefore }] of this.#attempts) {
      if (phase !== 'over' || notBefore > now) waiting.push(id)
      // An approval that sweeps have not found for a while has made progress.
      else if (now - notBefore > this.#sweepMs * MAX_SWEEPS) this.#attempts.delete(id)
    }
    return waiting
  }

  /** Queues an approval. It is resumed when fewer than the maximum of its principal run. */
  take(approval: Approval): void {
    const { id, state, chat } = approval
    const before = this.#attempts.get(id)
    if (before && before.phase !== 'over') return
    // An approval whose state has changed starts without a delay.
    const isSame = before?.approval.state.name === state.name
    const tries = isSame ? before.tries + 1 : 1
    this.#attempts.set(id, { approval, tries, phase: 'queued', notBefore: 0 })
    this.#startNext(chat.principalId)
  }

  #startNext(principalId: string): void {
    const own = [...this.#attempts.values()].filter(
      ({ approval, phase }) => phase !== 'over' && approval.chat.principalId === principalId,
    )
    const next = own.find(({ phase }) => phase === 'queued')
    if (!next || own.filter(({ phase }) => phase === 'running').length >= MAX_PER_PRINCIPAL) return
    next.phase = 'running'
    void this.#resume(next.approval).finally(() => {
      next.phase = 'over'
      const sweeps = Math.min(2 ** (next.tries - 1), MAX_SWEEPS)
      next.notBefore = this.#clock() + sweeps * this.#sweepMs
      this.#startNext(principalId)
    })
  }
}
