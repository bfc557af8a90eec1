import type { Approval, ApprovalTerms } from '../approvals/approval.ts'

/** A kind of call: what an entry of the ledger asks a person for, and what that means for its call. */
export interface CallKind {
  /** The `kind` in the terms of its entries. Undefined for an approval. */
  readonly name: ApprovalTerms['kind']
  /**
   * When the person is asked. `before-call`: the call starts with the decision, in any process. `during-call`: another call asks while it
   * runs. It waits in its process, and reads the decision from the ledger.
   */
  readonly asks: 'before-call' | 'during-call'
  /** Whether calls of this bridge can be of this kind. The ledger may have entries from a time when they could. */
  readonly isEnabled: boolean
}

/** An approval: a person decides whether a call runs. */
const APPROVAL: CallKind = { name: undefined, asks: 'before-call', isEnabled: true }

/** The kinds of calls of a bridge. */
export class CallKinds {
  readonly #all: readonly CallKind[]
  /** The kinds of questions that calls of this bridge can ask while they run. */
  readonly askedDuringCalls: readonly CallKind[]

  constructor(kinds: readonly CallKind[]) {
    this.#all = [APPROVAL, ...kinds]
    this.askedDuringCalls = kinds.filter(
      ({ asks, isEnabled }) => asks === 'during-call' && isEnabled,
    )
  }

  /** Returns the kind of an entry of the ledger. */
  of({ terms }: Pick<Approval, 'terms'>): CallKind {
    return this.#all.find(({ name }) => name === terms.kind) ?? APPROVAL
  }

  /** Whether a call asks this while it runs. */
  isAskedDuringCall(approval: Pick<Approval, 'terms'>): boolean {
    return this.of(approval).asks === 'during-call'
  }
}
