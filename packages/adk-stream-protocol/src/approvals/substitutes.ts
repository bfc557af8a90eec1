import type { Approval } from './approval.ts'

/** Who decides in the place of others now. A module implements it. */
export interface Substitutes {
  /** Returns the people who can decide a step of an approval in the place of these principals. */
  of(approval: Pick<Approval, 'terms'>, principals: readonly string[]): Promise<readonly string[]>
  /** Whether a person may see an approval in the place of another one. */
  maySee(approval: Pick<Approval, 'chat' | 'terms'>, personId: string): Promise<boolean>
}
