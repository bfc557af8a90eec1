import type { GrantOffer, UsedGrant } from './grants.ts'

/** The words of a person that decided an approval, and how they said it. */
export interface DecidingWords {
  readonly words: string
  readonly channel: 'typed' | 'spoken'
}

/** How a decision was made. */
export interface DecisionEvidence {
  /** The message that decided, if the person typed or said it instead of using the form. */
  readonly reply?: DecidingWords
  /** The grant that decided: a decision that the person made before, for calls like this one. */
  readonly grant?: UsedGrant
  /** The principal who decided in the place of the person who is named. */
  readonly delegate?: string
}

/** What a person can choose besides the decision. */
export interface DecisionOffers {
  /** The grants that the person can choose with the decision. */
  readonly offers?: readonly GrantOffer[]
}

/** Whether an earlier decision of the person decided, so that nobody was asked. */
export function isPriorDecision({ grant }: DecisionEvidence): boolean {
  return grant !== undefined
}

/** Returns the evidence of a decision, without other fields. */
export function pickEvidence({ reply, grant, delegate }: DecisionEvidence): DecisionEvidence {
  return {
    ...(reply && { reply }),
    ...(grant && { grant }),
    ...(delegate !== undefined && { delegate }),
  }
}

/** Returns copies of the evidence that the conversation shows. */
export function copyShownEvidence({ reply, grant }: DecisionEvidence) {
  return { ...(reply && { reply: { ...reply } }), ...(grant && { grant: { ...grant } }) }
}
