/** A payment as far as the text tells it. */
export interface PaymentDraft {
  readonly amount?: number
  readonly currency?: string
  readonly recipient?: string
  readonly description?: string
}

/** Amounts read in one sentence. Nobody orders more at once, and the bound keeps hostile text cheap. */
export const MOST_PAYMENTS = 20
