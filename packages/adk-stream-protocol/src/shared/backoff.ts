/**
 * The delays before a lost connection is opened again.
 *
 * @inline
 */
export interface Backoff {
  /** The first delay in ms. It doubles with each attempt. Default 250. */
  readonly firstMs?: number
  /** The longest delay in ms. Default 10,000. */
  readonly maxMs?: number
  /** Consecutive attempts before pending requests fail. A page keeps trying after that, and keeps decisions. Default 8. */
  readonly attempts?: number
}

export function withDefaults(backoff: Backoff | undefined): Required<Backoff> {
  return { firstMs: 250, maxMs: 10_000, attempts: 8, ...backoff }
}

/** Returns the delay in ms before an attempt, counted from 0. The jitter spreads clients that lost the same server. */
export function delayBefore(attempt: number, { firstMs, maxMs }: Required<Backoff>): number {
  return Math.min(maxMs, firstMs * 2 ** attempt) * (0.5 + Math.random() / 2)
}

/** Resolves after `ms`, or as soon as the signal is aborted. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const wake = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', wake)
      resolve()
    }
    const timer = setTimeout(wake, ms)
    signal.addEventListener('abort', wake)
  })
}
