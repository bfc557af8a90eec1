/** How often a call is tried that leads to nothing although the run ends well: trying again would not change it. */
const MAX_WITHOUT_ERROR = 2
/** How often one is tried whose run fails: what it needs may be out of reach for a while. */
const MAX_WITH_ERROR = 20
const FIRST_DELAY_MS = 250
const LONGEST_DELAY_MS = 60_000

interface Attempts {
  readonly failed: number
  readonly vain: number
  readonly nextAt: number
}

/**
 * Counts the attempts to go on with approved calls that led to nothing. Every attempt adds an event to the session, so they become
 * rarer, and end.
 */
export class VainAttempts {
  readonly #attempts = new Map<string, Attempts>()

  /** Whether it is time to try again. */
  isDue(approvalId: string): boolean {
    return performance.now() >= (this.#attempts.get(approvalId)?.nextAt ?? 0)
  }

  /** Notes an attempt; false when there should be no other. */
  note(approvalId: string, end: 'failed' | 'ended'): boolean {
    const { failed, vain } = this.#attempts.get(approvalId) ?? { failed: 0, vain: 0 }
    const after = end === 'failed' ? { failed: failed + 1, vain } : { failed, vain: vain + 1 }
    if (after.failed >= MAX_WITH_ERROR || after.vain >= MAX_WITHOUT_ERROR) {
      this.forget(approvalId)
      return false
    }
    const delayMs = Math.min(FIRST_DELAY_MS * 2 ** (failed + vain), LONGEST_DELAY_MS)
    this.#attempts.set(approvalId, { ...after, nextAt: performance.now() + delayMs })
    return true
  }

  forget(approvalId: string): void {
    this.#attempts.delete(approvalId)
  }
}
