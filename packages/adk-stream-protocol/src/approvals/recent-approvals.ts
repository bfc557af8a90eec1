import type { Approval } from './approval.ts'

/** The latest known form of approvals that wait for their next step, so that it need not be read before it is tried. */
export class RecentApprovals {
  readonly #approvals = new Map<string, Approval>()

  get(id: string): Approval | undefined {
    return this.#approvals.get(id)
  }

  keep(approval: Approval): void {
    this.#approvals.delete(approval.id)
    if (!isSafe(approval)) return
    this.#approvals.set(approval.id, approval)
    const [oldest] = this.#approvals.keys()
    if (this.#approvals.size > MAX_KEPT && oldest !== undefined) this.#approvals.delete(oldest)
  }
}

const MAX_KEPT = 1_000

/**
 * The caller holds the same object. If it changes the arguments, the digest no longer fits and the approval is read again;
 * edited arguments have no digest.
 */
function isSafe({ state }: Approval): boolean {
  return state.name === 'requested' || (state.name === 'approved' && state.editedArgs === undefined)
}
