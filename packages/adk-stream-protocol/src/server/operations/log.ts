/**
 * An entry for the log of the application. It contains ids and figures, and never prompts, replies, arguments or results.
 *
 * @inline
 */
export interface LogEntry {
  readonly level: 'info' | 'warn' | 'error'
  /** What happened, as a stable word such as `turn.failed`. The operations recipe lists all of them. */
  readonly event: LogEvent
  /** What happened, as a sentence for people. */
  readonly message: string
  readonly chatId?: string
  readonly principalId?: string
  readonly messageId?: string
  readonly approvalId?: string
  readonly toolCallId?: string
  readonly toolName?: string
  /** The code of an error, or the reason of a change. */
  readonly code?: string
  /** The outcome of an approval: `approved`, `denied`, `expired` or `cancelled`. */
  readonly outcome?: string
  /** The principal who decided. */
  readonly decidedBy?: string
  readonly durationMs?: number
  /** How many times it has happened since the last entry with the same event and code. */
  readonly count?: number
}

type LogEvent =
  | 'bridge.started'
  | 'bridge.closing'
  | 'bridge.closed'
  | 'turn.failed'
  | 'lease.lost'
  | 'approval.requested'
  | 'approval.ended'
  | 'call.failed'
  | 'call.unknown'
  | 'call.recovered'
  | 'store.unavailable'
  | 'store.available'
  | 'request.refused'

/** Writes an entry. Never throws. */
export type WriteLog = (entry: LogEntry) => void

/** Returns a function that passes entries to the application's hook. An error of the hook is reported and changes nothing else. */
export function toLog(
  log: ((entry: LogEntry) => void) | undefined,
  onError: (error: unknown) => void,
): WriteLog {
  if (!log) return () => undefined
  return (entry) => {
    try {
      log(entry)
    } catch (error) {
      onError(error)
    }
  }
}

/** The shortest time between two entries about the same kind of event. */
const INTERVAL_MS = 10_000

/**
 * Limits how often events of the same kind are logged: a client that repeats a refused request must not fill the log. Kinds must be few,
 * such as error codes.
 */
export class LogThrottle {
  readonly #clock: () => number
  readonly #kinds = new Map<string, { loggedAt: number; count: number }>()

  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock
  }

  /** Counts an event. Returns the number since the last entry if it is time for another entry. */
  count(kind: string): number | undefined {
    const now = this.#clock()
    const known = this.#kinds.get(kind) ?? { loggedAt: -Infinity, count: 0 }
    this.#kinds.set(kind, known)
    known.count += 1
    if (now - known.loggedAt < INTERVAL_MS) return undefined
    const { count } = known
    known.loggedAt = now
    known.count = 0
    return count
  }
}
