/** How something that was lost is opened again. */
export interface Backoff {
  /** The first pause in ms; it doubles each time. Default 250. */
  readonly firstMs?: number
  /** The longest pause in ms. Default 10,000. */
  readonly maxMs?: number
  /** Attempts in a row before what waits for it fails. Default 8. */
  readonly attempts?: number
}

export function withDefaults(backoff: Backoff | undefined): Required<Backoff> {
  return { firstMs: 250, maxMs: 10_000, attempts: 8, ...backoff }
}

/** The pause in ms before an attempt, counted from 0. Clients that lost one server do not come back all at once. */
export function pauseBefore(attempt: number, { firstMs, maxMs }: Required<Backoff>): number {
  return Math.min(maxMs, firstMs * 2 ** attempt) * (0.5 + Math.random() / 2)
}
