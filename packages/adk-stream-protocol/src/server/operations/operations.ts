import type { Approval } from '../../approvals/approval.ts'
import { wasUnasked } from '../../approvals/approval.ts'
import type { AuditEvent } from '../../approvals/audit-entry.ts'
import { isAside } from '../../approvals/audit-entry.ts'
import type { ProtocolError } from '../../protocol/errors.ts'
import { StoreError } from '../../store/store-error.ts'
import type { RunOutcome } from '../../turns/run-turn.ts'
import type { TurnInfo } from '../settings/observers.ts'
import { catchRejection } from '../settings/observers.ts'
import type { LevelName, Levels } from './metrics.ts'
import { createInstruments, observeLevels } from './metrics.ts'

/** The application's hook for log entries. */
export interface LogOptions {
  readonly log?: ((entry: LogEntry) => void) | undefined
}

interface OperationsOptions extends LogOptions {
  readonly onError: (error: unknown) => void
  /** Default: the clock of the process. */
  readonly clock?: () => number
}

/** Reports to operators what happens in a bridge: updates the metrics and writes log entries. Its methods never throw. */
export class Operations {
  readonly #log: WriteLog
  readonly #metrics = createInstruments()
  #stopObserving: () => void = () => undefined
  readonly #countRefusal = createLogThrottle()
  readonly #clock: () => number
  /** Why the store cannot be used, if it cannot. */
  #storeFault: { readonly error: unknown; readonly seenAt: number } | undefined

  constructor({ log, onError, clock = () => performance.now() }: OperationsOptions) {
    this.#log = toLog(log, onError)
    this.#clock = clock
  }

  /** The lasting error of the store, if there is one. */
  get storeFault(): StoreError | undefined {
    return findLasting(this.#storeFault?.error)
  }

  /** `untestedAdk`: a sentence about the version of ADK, if this package is not tested with it. */
  started(untestedAdk?: string): void {
    this.#log({ level: 'info', event: 'bridge.started', message: 'The bridge has started.' })
    if (untestedAdk !== undefined)
      this.#log({ level: 'warn', event: 'adk.untested', message: untestedAdk })
  }

  closing(): void {
    const message = 'The bridge is closing: it refuses new work, and running work may finish.'
    this.#log({ level: 'info', event: 'bridge.closing', message })
  }

  closed(): void {
    this.#stopObserving()
    this.#log({ level: 'info', event: 'bridge.closed', message: 'The bridge is closed.' })
  }

  /** Reads these levels whenever metrics are collected, until the bridge is closed. `openRuns` names the level of the runs that stay open. */
  observe(read: () => Promise<Levels>, openRuns: LevelName): void {
    this.#stopObserving = observeLevels(read, openRuns)
  }

  /** A turn has ended. For a live session, every message is a turn. */
  turnEnded(turn: TurnInfo, { end, paused, stats }: RunOutcome, isSpoken: boolean): void {
    const { chunks, durationMs, firstChunkMs, errorCode, calls } = stats
    const { turnsEnded, turnDuration, firstChunk, leasesLost } = this.#metrics
    const outcome = end === 'completed' && paused ? 'paused' : end
    turnsEnded.add(1, { outcome, ...(errorCode !== undefined && { 'error.type': errorCode }) })
    turnDuration.record(durationMs / 1_000, { outcome })
    this.#metrics.chunks.add(chunks)
    // A message of a live session begins with its first chunk.
    if (!isSpoken && firstChunkMs !== undefined) firstChunk.record(firstChunkMs / 1_000)
    if (errorCode === 'turn-lost') leasesLost.add(1)
    for (const { toolName, hasFailed } of calls)
      this.#toolEnded(toolName, hasFailed ? 'failed' : 'succeeded')
    if (errorCode === undefined) return
    const { chatId, principalId, messageId } = turn
    const fields = { chatId, principalId, messageId, durationMs: Math.round(durationMs) }
    if (errorCode === 'turn-lost')
      this.#log({
        level: 'warn',
        event: 'lease.lost',
        message: 'Another process has taken over the chat, because the lease of this one expired.',
        ...fields,
      })
    else
      this.#log({
        level: 'error',
        event: 'turn.failed',
        message: `A turn failed with ${errorCode}.`,
        code: errorCode,
        ...fields,
      })
  }

  /** This process has changed an approval. */
  approvalChanged(approval: Approval, event: AuditEvent): void {
    if (isAside(event)) return
    const { toolName } = approval
    switch (event.type) {
      case 'requested':
        this.#metrics.approvalsRequested.add(1, { [TOOL]: toolName })
        this.#logCall(approval, {
          level: 'info',
          event: 'approval.requested',
          message: `${toolName} waits for approval.`,
        })
        break
      case 'approved':
      case 'denied':
      case 'expired':
      case 'cancelled':
        this.#approvalEnded(approval, event)
        break
      case 'succeeded':
        this.#toolEnded(toolName, 'succeeded')
        break
      case 'failed':
        this.#toolEnded(toolName, 'failed')
        this.#logCall(approval, {
          level: 'warn',
          event: 'call.failed',
          message: `The approved call of ${toolName} failed.`,
        })
        break
      case 'lost':
        this.#callLost(approval, event)
        break
      case 'voted':
      case 'withdrawn':
      case 'started':
    }
  }

  /** A request, an upgrade or a frame was refused. */
  refused({ code }: ProtocolError): void {
    this.#metrics.refused.add(1, { 'error.type': code })
    if (!REPORTED_REFUSALS.has(code) && !code.startsWith('too-many-')) return
    const count = this.#countRefusal(code)
    if (count === undefined) return
    const message = `Refused ${count === 1 ? 'a request' : `${count} requests`} with ${code}.`
    this.#log({ level: 'warn', event: 'request.refused', message, code, count })
  }

  /** A sweep has ended. It uses the store, so this is noticed without any request. */
  swept(error?: unknown): void {
    if (error !== undefined) {
      if (error instanceof StoreError) this.storeChecked(error)
      return
    }
    // A small write may succeed on a full disk, so a lasting error ends when it has not been seen for a while.
    const fault = this.#storeFault
    const isOver = !fault || !this.storeFault || this.#clock() - fault.seenAt >= QUIET_MS
    if (isOver) this.#storeWorks()
  }

  /** The store was read, with success or with an error. */
  storeChecked(error?: unknown): void {
    // Every error goes to `onError` as well, and so to `isNews`.
    if (findLasting(error)) return
    if (error !== undefined) this.#storeFailed(error)
    else if (!this.storeFault) this.#storeWorks()
  }

  /**
   * Returns false for a lasting error of the store that was reported before. Every request and every sweep would report it, until an
   * operator acts.
   */
  isNews(error: unknown): boolean {
    const lasting = findLasting(error)
    if (!lasting) return true
    const isNew = this.storeFault?.code !== lasting.code
    this.#storeFailed(lasting)
    return isNew
  }

  #storeWorks(): void {
    if (!this.#storeFault) return
    this.#storeFault = undefined
    const message = 'The store is available again.'
    this.#log({ level: 'info', event: 'store.available', message })
  }

  #storeFailed(error: unknown): void {
    const code = error instanceof StoreError ? error.code : 'internal'
    const isLogged = this.#storeFault && (!findLasting(error) || this.storeFault?.code === code)
    this.#storeFault = { error, seenAt: this.#clock() }
    if (isLogged === true) return
    const advice = ADVICE[code] ?? 'It may pass.'
    const message = `The store cannot be used: ${code}. ${advice} \`onError\` receives the details.`
    this.#log({ level: 'error', event: 'store.unavailable', message, code })
  }

  #approvalEnded(
    approval: Approval,
    event: Extract<AuditEvent, { type: 'approved' | 'denied' | 'expired' | 'cancelled' }>,
  ): void {
    const { toolName, requestedAt, state } = approval
    const outcome = event.type
    const isDecision = outcome === 'approved' || outcome === 'denied'
    const durationMs = 'at' in state ? Math.max(0, state.at - requestedAt) : undefined
    const { approvalsEnded, decisionDuration } = this.#metrics
    approvalsEnded.add(1, { [TOOL]: toolName, outcome })
    // A grant decides at once, and nobody reads the call.
    if (isDecision && durationMs !== undefined && !wasUnasked(approval))
      decisionDuration.record(durationMs / 1_000, { [TOOL]: toolName, outcome })
    this.#logCall(approval, {
      level: 'info',
      event: 'approval.ended',
      message: `The approval of ${toolName} is ${outcome}.`,
      outcome,
      ...('by' in event && { decidedBy: event.by }),
      ...(durationMs !== undefined && { durationMs }),
    })
  }

  #callLost(
    approval: Approval,
    { becomes, isUnstarted }: Extract<AuditEvent, { type: 'lost' }>,
  ): void {
    const { toolName } = approval
    if (isUnstarted) {
      const message = `The store failed before ${toolName} started. The call starts now.`
      this.#logCall(approval, { level: 'warn', event: 'call.recovered', message })
    } else if (becomes === 'unknown') {
      this.#toolEnded(toolName, 'unknown')
      const message = `A process was lost while ${toolName} ran. It is unknown whether the call took effect.`
      this.#logCall(approval, { level: 'error', event: 'call.unknown', message })
    } else {
      this.#metrics.callsRecovered.add(1, { [TOOL]: toolName })
      const message = `A process was lost while ${toolName} ran. The call runs again, because it is idempotent.`
      this.#logCall(approval, { level: 'warn', event: 'call.recovered', message })
    }
  }

  #toolEnded(toolName: string, outcome: 'succeeded' | 'failed' | 'unknown'): void {
    this.#metrics.toolsEnded.add(1, { [TOOL]: toolName, outcome })
  }

  /** Logs an entry with the ids of an approval. */
  #logCall(
    { id: approvalId, chat, messageId, toolCallId, toolName }: Approval,
    entry: LogEntry,
  ): void {
    const { chatId, principalId } = chat
    this.#log({ ...entry, approvalId, chatId, principalId, messageId, toolCallId, toolName })
  }
}

/** The attribute of metrics with the name of a tool. */
const TOOL = 'gen_ai.tool.name'

/** Refusals that point to a limit or to a wrong setting, besides those of the limits `too-many-…`. All others are only counted. */
const REPORTED_REFUSALS: ReadonlySet<string> = new Set([
  'forbidden-origin',
  'forbidden-host',
  'overloaded',
  'too-fast',
  'too-large',
])

/** How long a lasting error of the store must not have been seen before the store counts as repaired. */
const QUIET_MS = 10_000

/** What to do about lasting errors of the store, by code. */
const ADVICE: Readonly<Record<string, string>> = {
  misconfigured: 'Check the connection string and the rights of its user.',
  'read-only': 'Connect to the primary server, or make the database writable.',
  full: 'Free disk space.',
  corrupt: 'Restore the database from a backup, and restart the process.',
  'newer-schema': 'Start the newer version of the library.',
  'older-schema': 'Run the migrations. A database of an unreleased version must be deleted.',
  closed: 'Restart the process. Close the store after the bridge.',
}

/** Returns the lasting error of the store that is or caused an error. A bridge may use a store whose audit record was changed. */
function findLasting(error: unknown): StoreError | undefined {
  if (error instanceof StoreError)
    return error.isLasting && error.code !== 'tampered' ? error : undefined
  return error instanceof Error ? findLasting(error.cause) : undefined
}

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
  | 'adk.untested'
  | 'bridge.closing'
  | 'bridge.closed'
  | 'turn.failed'
  | 'lease.lost'
  | 'approval.requested'
  | 'approval.ended'
  | 'approver.fast'
  | 'call.failed'
  | 'call.unknown'
  | 'call.recovered'
  | 'store.unavailable'
  | 'store.available'
  | 'request.refused'

/** Writes an entry. Never throws. */
type WriteLog = (entry: LogEntry) => void

/** Returns a function that passes entries to the application's hook. An error of the hook is reported and changes nothing else. */
export function toLog(
  log: ((entry: LogEntry) => void) | undefined,
  onError: (error: unknown) => void,
): WriteLog {
  if (!log) return () => undefined
  return (entry) => {
    try {
      catchRejection(log(entry), onError)
    } catch (error) {
      onError(error)
    }
  }
}

/** The shortest time between two entries about the same kind of event. */
const INTERVAL_MS = 10_000

/**
 * Limits how often events of the same kind are logged: a client that repeats a refused request must not fill the log. Kinds must be few,
 * such as error codes. Returns a function that counts an event, and returns the number since the last entry if it is time for another
 * entry.
 */
export function createLogThrottle(
  clock: () => number = () => performance.now(),
): (kind: string) => number | undefined {
  const kinds = new Map<string, { loggedAt: number; count: number }>()
  return (kind) => {
    const now = clock()
    const known = kinds.get(kind) ?? { loggedAt: -Infinity, count: 0 }
    kinds.set(kind, known)
    known.count += 1
    if (now - known.loggedAt < INTERVAL_MS) return undefined
    const { count } = known
    known.loggedAt = now
    known.count = 0
    return count
  }
}
