import { keepNewest } from '../shared/collections.ts'
import type { Approval } from './approval.ts'

/** Caches approvals that wait for their next transition, so that the ledger can try it without reading them again. */
export class RecentApprovals {
  readonly #approvals = new Map<string, Approval>()

  get(id: string): Approval | undefined {
    return this.#approvals.get(id)
  }

  keep(approval: Approval): void {
    this.#approvals.delete(approval.id)
    if (!isCacheable(approval)) return
    this.#approvals.set(approval.id, approval)
    keepNewest(this.#approvals, MAX_KEPT)
  }
}

const MAX_KEPT = 1_000

/**
 * The caller holds the same object. If it changes the arguments, the digest no longer matches and the approval is
 * read again. Edited arguments have no digest.
 */
function isCacheable({ state }: Approval): boolean {
  return state.name === 'requested' || (state.name === 'approved' && state.editedArgs === undefined)
}
