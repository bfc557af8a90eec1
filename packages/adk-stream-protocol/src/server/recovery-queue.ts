import type { Approval } from '../approvals/approval.ts'

/** How many approvals of one principal sweeps go on with at once. */
const MAX_PER_PRINCIPAL = 4
/** The longest time between two tries, in sweeps. */
const MAX_SWEEPS = 16

interface Attempt {
  readonly approval: Approval
  readonly tries: number
  phase: 'queued' | 'running' | 'over'
  /** When it may be tried again, by the clock of this process. */
  notBefore: number
}

/**
 * What sweeps go on with: each approval once at a time, few of one principal at once, and those of which nothing comes less and
 * less often, so that what cannot go on does not keep back what can.
 */
export class Followed {
  readonly #follow: (approval: Approval) => Promise<void>
  readonly #sweepMs: number
  readonly #clock: () => number
  readonly #attempts = new Map<string, Attempt>()

  /** `follow` goes on with an approval to its end, and never rejects. */
  constructor(
    follow: (approval: Approval) => Promise<void>,
    sweepMs: number,
    clock: () => number = () => performance.now(),
  ) {
    this.#follow = follow
    this.#sweepMs = sweepMs
    this.#clock = clock
  }

  /** The approvals that are under way, or that it is too early to try again. */
  notNow(): string[] {
    const now = this.#clock()
    const waiting: string[] = []
    for (const [id, { phase, notBefore }] of this.#attempts) {
      if (phase !== 'over' || notBefore > now) waiting.push(id)
      // What is not found again within some sweeps has gone on.
      else if (now - notBefore > this.#sweepMs * MAX_SWEEPS) this.#attempts.delete(id)
    }
    return waiting
  }

  /** Goes on with an approval, when others of its principal leave room for it. */
  take(approval: Approval): void {
    const { id, state, chat } = approval
    const before = this.#attempts.get(id)
    if (before && before.phase !== 'over') return
    // One that has changed since is tried like a new one.
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
    void this.#follow(next.approval).finally(() => {
      next.phase = 'over'
      const sweeps = Math.min(2 ** (next.tries - 1), MAX_SWEEPS)
      next.notBefore = this.#clock() + sweeps * this.#sweepMs
      this.#startNext(principalId)
    })
  }
}
