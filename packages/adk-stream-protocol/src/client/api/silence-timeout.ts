import { readKeepAlive } from '../../protocol/sse.ts'
import { disconnected } from '../adk-error.ts'

/** The timeout before the server has announced its keep-alive interval, in ms: three times the default interval. */
const DEFAULT_TIMEOUT_MS = 45_000

/** The number of keep-alive intervals after which a connection counts as lost. */
const MISSED_INTERVALS = 3

/** Aborts a request on which nothing arrives: a half-open connection neither delivers anything nor ends. */
export interface SilenceTimeout {
  readonly signal: AbortSignal
  /** Something arrived, perhaps with the interval in which keep-alives follow. */
  readonly restart: (keepAliveMs?: number) => void
  /** A comment arrived. */
  readonly onComment: (comment: string) => void
  readonly stop: () => void
}

/** `signal` also aborts the request. */
export function startSilenceTimeout(
  signal: AbortSignal | undefined,
  timeoutMs = DEFAULT_TIMEOUT_MS,
): SilenceTimeout {
  const controller = new AbortController()
  let ms = timeoutMs
  let timer: ReturnType<typeof setTimeout> | undefined
  const restart = (keepAliveMs?: number): void => {
    clearTimeout(timer)
    if (keepAliveMs !== undefined) ms = keepAliveMs * MISSED_INTERVALS
    timer = setTimeout(() => controller.abort(disconnected('the server fell silent')), ms)
  }
  restart()
  return {
    signal: signal ? AbortSignal.any([signal, controller.signal]) : controller.signal,
    restart,
    onComment: (comment) => restart(readKeepAlive(`: ${comment}`)),
    stop: () => clearTimeout(timer),
  }
}
