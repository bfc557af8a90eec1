import { keepNewest } from '../../../shared/collections.ts'

/** How often a call is resumed that does not start although the run ends without an error. Another attempt would not change that. */
const MAX_WITHOUT_ERROR = 2
/** How often a call is resumed whose run fails. The cause may be temporary. */
const MAX_WITH_ERROR = 20
const FIRST_DELAY_MS = 250
const LONGEST_DELAY_MS = 60_000
const MAX_KEPT = 10_000

interface Attempts {
  readonly failed: number
  readonly ended: number
  readonly nextAt: number
}

/**
 * Counts the attempts to resume approved calls that did not start. Every attempt adds an event to the session, so the delay doubles and
 * the number of attempts is limited.
 */
export class ResumeAttempts {
  readonly #attempts = new Map<string, Attempts>()

  /** Whether it is time to try again. */
  isDue(approvalId: string): boolean {
    return performance.now() >= (this.#attempts.get(approvalId)?.nextAt ?? 0)
  }

  /** Records an attempt. Returns false if there must not be another one. */
  note(approvalId: string, end: 'failed' | 'ended'): boolean {
    const { failed, ended } = this.#attempts.get(approvalId) ?? { failed: 0, ended: 0 }
    const after = end === 'failed' ? { failed: failed + 1, ended } : { failed, ended: ended + 1 }
    if (after.failed >= MAX_WITH_ERROR || after.ended >= MAX_WITHOUT_ERROR) {
      this.forget(approvalId)
      return false
    }
    const delayMs = Math.min(FIRST_DELAY_MS * 2 ** (failed + ended), LONGEST_DELAY_MS)
    this.#attempts.set(approvalId, { ...after, nextAt: performance.now() + delayMs })
    // Another process may resume the call, and this one is not told.
    keepNewest(this.#attempts, MAX_KEPT)
    return true
  }

  forget(approvalId: string): void {
    this.#attempts.delete(approvalId)
  }
}
