/** A payment that may be incomplete. */
export interface PaymentDraft {
  readonly amount?: number
  readonly currency?: string
  readonly recipient?: string
  readonly description?: string
}

/** The maximum number of amounts in one sentence. Bounds the time for hostile text. */
export const MAX_PAYMENTS = 20
