import { Worker } from 'node:worker_threads'

import type { LeaseOptions, LeaseRenewal } from '../../locks/lock-store.ts'
import { StoreError } from '../store-error.ts'
import type { FeatureTables } from '../tables/feature-tables.ts'
import type { Connection } from './connection.ts'

/**
 * The clock for leases, in ms. With `uncapped`, it also counts the time since the last renewal in which no process could write, as
 * people want to know it.
 */
export type LeaseClock = (uncapped?: 'uncapped') => number

/** The clock of the system, which all processes of a machine share. It cannot be set, and it restarts with the machine. */
const monotonicNow = (): number => Number(process.hrtime.bigint()) / 1e6

/**
 * Returns the clock for leases: the monotonic clock without the time in which no process could write. The table `lease_clock` says
 * that it was `at` when the monotonic clock was `ticked_at`, and that it advances by at most `max_gap` until a process stores it again.
 */
export function sharedLeaseClock(connection: Connection): LeaseClock {
  const select = connection.prepare<{ at: number; ticked_at: number; max_gap: number }>(
    'SELECT at, ticked_at, max_gap FROM lease_clock',
  )
  return (uncapped) => {
    const [stored] = select.rows()
    if (!stored) throw new StoreError('corrupt', 'The table lease_clock is empty.')
    const passed = Math.max(0, monotonicNow() - stored.ticked_at)
    return stored.at + (uncapped ? passed : Math.min(passed, stored.max_gap))
  }
}

/**
 * Advances the lease clock by at most `maxGapMs`: if no process has done so for longer, the database was locked, and no process
 * could renew its lease. For use in a write transaction.
 */
export function prepareTick(connection: Connection): (maxGapMs: number) => void {
  const tick = connection.prepare(TICK)
  return (maxGapMs) => void tick.run(monotonicNow(), maxGapMs)
}

/** The parameters are the time of the monotonic clock, and the most by which the lease clock advances. */
const TICK = `
  UPDATE lease_clock SET at = at + max(0, min(?1 - ticked_at, ?2)), ticked_at = ?1, max_gap = iif(?2 > 0, ?2, max_gap)`

/** Restarts the lease clock with the clock of the machine. Leases from before then lie in the future. */
export async function restartLeaseClock(connection: Connection): Promise<void> {
  const find = connection.prepare<{ earlier: number }>(
    'SELECT 1 AS earlier FROM lease_clock WHERE ticked_at > ?',
  )
  if ((await find.select(monotonicNow())).length === 0) return
  const restart = connection.prepare(
    'UPDATE lease_clock SET at = ?1, ticked_at = ?1 WHERE ticked_at > ?1',
  )
  await connection.write(() => restart.run(monotonicNow()))
}

/**
 * Ends leases from before the last restart of the machine. Only their times can lie in the future, because every
 * lease time is read inside the write transaction that stores it. Other old leases expire on their own.
 */
export async function endEarlierLeases(
  connection: Connection,
  clock: LeaseClock,
  features: readonly FeatureTables[],
): Promise<void> {
  const times = features.flatMap(({ leaseTime }) => leaseTime ?? [])
  const find = connection.prepare<{ later: number }>(`
    SELECT 1 AS later WHERE
      EXISTS (SELECT 1 FROM workers WHERE beat_at > ?1) OR EXISTS (SELECT 1 FROM chat_locks WHERE locked_at > ?1)
      OR EXISTS (SELECT 1 FROM approvals WHERE state = 'executing' AND started_at > ?1)
      OR EXISTS (SELECT 1 FROM approvals WHERE unreported_since IS NOT NULL AND unreported_since > ?1)
      ${times.map(({ table, column }) => `OR EXISTS (SELECT 1 FROM ${table} WHERE ${column} > ?1)`).join(' ')}`)
  // Usually there are none, and this query takes no lock.
  if ((await find.select(clock())).length === 0) return
  const steps = [
    'DELETE FROM workers WHERE beat_at > ?1',
    'DELETE FROM chat_locks WHERE locked_at > ?1',
    `UPDATE approvals SET started_at = 0 WHERE state = 'executing' AND started_at > ?1`,
    'UPDATE approvals SET unreported_since = 0 WHERE unreported_since IS NOT NULL AND unreported_since > ?1',
    ...times.map(
      ({ table, column }) => `UPDATE ${table} SET ${column} = NULL WHERE ${column} > ?1`,
    ),
  ].map((sql) => connection.prepare(sql))
  await connection.write(() => {
    const now = clock()
    for (const step of steps) step.run(now)
  })
}

/** Renews the lease of a worker in a separate thread while the event loop of this thread is blocked. */
export function renewInThread(path: string, lease: LeaseOptions): ThreadedRenewal {
  const { worker, leaseMs, maxBlockedMs, onError } = lease
  const shared = new BigInt64Array(new SharedArrayBuffer(3 * BigInt64Array.BYTES_PER_ELEMENT))
  const recordTime = (index: number) => Atomics.store(shared, index, process.hrtime.bigint())
  recordTime(LOOP_RAN_AT)
  const stop = LeaseThread.ofProcess().start(
    { path, worker, leaseMs, maxBlockedMs, shared, tick: TICK },
    onError,
  )
  const timer = setInterval(() => recordTime(LOOP_RAN_AT), leaseMs / 8)
  timer.unref()
  return {
    setBusy(busy) {
      recordTime(LOOP_RAN_AT)
      // Claiming a call or locking a chat has renewed the lease.
      if (busy) recordTime(RENEWED_AT)
      Atomics.store(shared, BUSY, busy ? 1n : 0n)
    },
    recordRenewal: () => void recordTime(RENEWED_AT),
    async close() {
      clearInterval(timer)
      await stop()
    },
  }
}

export interface ThreadedRenewal extends LeaseRenewal {
  /** Records that the event loop has renewed the lease itself. */
  recordRenewal(): void
  close(): Promise<void>
}

/**
 * Indices of the array that both threads share: when the event loop last ran, when the lease was last renewed (both
 * in ns of the monotonic clock), and whether the process is busy.
 */
const [LOOP_RAN_AT, RENEWED_AT, BUSY] = [0, 1, 2]

/** What the thread needs in order to renew a lease. */
export interface LeaseThreadData {
  readonly path: string
  readonly worker: string
  readonly leaseMs: number
  readonly maxBlockedMs: number
  readonly shared: BigInt64Array
  /** The statement that advances the lease clock. */
  readonly tick: string
}

/** A message to the thread. */
export type LeaseThreadRequest =
  | { readonly type: 'start'; readonly id: number; readonly data: LeaseThreadData }
  | { readonly type: 'stop'; readonly id: number }
  | { readonly type: 'end' }

/** A message from the thread. */
export interface LeaseThreadReply {
  readonly type: 'stopped' | 'failed'
  readonly id: number
  readonly error?: unknown
}

/** How long the thread stays when it has nothing to renew, in ms. A process often closes a store and opens another. */
const UNUSED_MS = 10_000

interface Renewal {
  readonly onError: (error: unknown) => void
  /** Set while the renewal is being stopped. */
  onStopped?: () => void
}

/** The thread of this process that renews leases. All stores share it, because the start of a thread is expensive. */
class LeaseThread {
  static #ofProcess: LeaseThread | undefined

  static ofProcess(): LeaseThread {
    return (LeaseThread.#ofProcess ??= new LeaseThread())
  }

  readonly #worker: Worker
  readonly #renewals = new Map<number, Renewal>()
  #lastId = 0
  #unused: NodeJS.Timeout | undefined

  constructor() {
    this.#worker = new Worker(new URL('./lease-thread.js', import.meta.url), {
      name: 'adk-stream-protocol lease',
      // The thread does not need the loaders of the host.
      execArgv: [],
    })
    this.#worker.on('message', (reply: LeaseThreadReply) => this.#handle(reply))
    this.#worker.once('error', (cause: unknown) => this.#handleEnd(cause))
    this.#worker.once('exit', () => this.#handleEnd())
    // It does not keep the process alive.
    this.#worker.unref()
  }

  /** Starts to renew a lease. Returns a function that stops it, and waits until the database is closed. */
  start(data: LeaseThreadData, onError: (error: unknown) => void): () => Promise<void> {
    clearTimeout(this.#unused)
    const id = (this.#lastId += 1)
    this.#renewals.set(id, { onError })
    this.#post({ type: 'start', id, data })
    return () => this.#stop(id)
  }

  async #stop(id: number): Promise<void> {
    const renewal = this.#renewals.get(id)
    if (!renewal) return
    // The caller waits for the thread, so the process must stay alive until it has answered.
    this.#worker.ref()
    await new Promise<void>((resolve) => {
      renewal.onStopped = resolve
      this.#post({ type: 'stop', id })
    })
  }

  #handle({ type, id, error }: LeaseThreadReply): void {
    const renewal = this.#renewals.get(id)
    if (type === 'failed') return renewal?.onError(stoppedError(error))
    this.#renewals.delete(id)
    renewal?.onStopped?.()
    if ([...this.#renewals.values()].some(({ onStopped }) => onStopped)) return
    this.#worker.unref()
    if (this.#renewals.size === 0) {
      this.#unused = setTimeout(() => this.#end(), UNUSED_MS)
      this.#unused.unref()
    }
  }

  #end(): void {
    this.#forget()
    this.#post({ type: 'end' })
  }

  #handleEnd(cause?: unknown): void {
    this.#forget()
    const renewals = [...this.#renewals.values()]
    this.#renewals.clear()
    for (const { onError, onStopped } of renewals) {
      if (onStopped) onStopped()
      else onError(stoppedError(cause))
    }
  }

  /** The next lease gets a new thread. */
  #forget(): void {
    clearTimeout(this.#unused)
    if (LeaseThread.#ofProcess === this) LeaseThread.#ofProcess = undefined
  }

  #post(request: LeaseThreadRequest): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
    this.#worker.postMessage(request)
  }
}

function stoppedError(cause: unknown): StoreError {
  return new StoreError(
    'unavailable',
    'The thread that renews the leases of this process has stopped. If the event loop is blocked, another process may take over running calls.',
    { cause },
  )
}
