import type { Approval } from '../../../approvals/approval.ts'
import type { AppChatRef, ChatRef } from '../../../shared/chat-ref.ts'
import {
  type RetentionLimits,
  removeOrphans,
  retentionOf,
  runRetention,
} from '../../../store/remove-data.ts'
import type { LazyBackend } from '../backend.ts'
import { repeat } from './repeat.ts'

/** Background work at an interval, one run at a time. Other processes may do the same. */
export interface Sweeper {
  /** Starts no new work. */
  drain(): void
  /** Stops, and waits for the current run. */
  close(): Promise<void>
}

export interface RecoveryOptions {
  readonly backend: LazyBackend
  readonly intervalMs: number
  /** Resumes the turn of a decided or ended approval until it ends. Never rejects. */
  readonly resume: (approval: Approval) => Promise<void>
  /** Returns approvals whose turns failed in this process because the store did, except those with the given ids. */
  readonly takeStoreFailures: (except: readonly string[]) => Promise<Approval[]>
  /** Another process may have taken a chat over from this one. */
  readonly onLost: (chat: ChatRef) => void
  /** Ends the turns of crashed servers, and does the work of modules whose time has come. */
  readonly recoverTurns: () => Promise<void>
  /** Whether the sweep must write, to find out whether the store can be written to again. */
  readonly mustWrite: () => boolean
  readonly onError: (error: unknown) => void
  /** Called after each sweep, with the error that ended it. Every sweep uses the store. */
  readonly onSwept: (error?: unknown) => void
}

/** Expires approvals, recovers calls after crashes, and resumes turns whose outcome was not reported. */
export function startRecovery(options: RecoveryOptions): Sweeper {
  const { backend, intervalMs, resume, recoverTurns, mustWrite } = options
  const { onSwept, onError } = options
  const queue = new RecoveryQueue(resume, intervalMs)
  let isDraining = false
  let renewal: Promise<void> | undefined

  const renewLease = async (): Promise<void> => {
    const { ledger } = await backend.get()
    // An idle process writes to the disk only if another one has work.
    await (ledger.busy || mustWrite() ? ledger.heartbeat() : ledger.tickLeases())
  }
  const renew = (): Promise<void> => {
    renewal ??= renewLease().finally(() => {
      renewal = undefined
    })
    return renewal
  }
  const sweep = async (): Promise<void> => {
    const { ledger } = await backend.get()
    await renew()
    // After the renewal: no other process takes a chat over that this one still has.
    for (const chat of await ledger.locks.reconcile()) options.onLost(chat)
    // While this process closes, other processes handle pending work.
    if (isDraining) {
      await ledger.recordFinished()
      return
    }
    const ended = [...(await ledger.expireDue()), ...(await ledger.recover())]
    // The servers of another application report its approvals.
    const own = ended.filter(({ chat }) => chat.appName === ledger.appName)
    const except = queue.deferredIds()
    const unreported = await ledger.unreported({ except })
    // Last, because they are taken once.
    const failed = await options.takeStoreFailures(except)
    for (const approval of [...own, ...failed, ...unreported]) queue.take(approval)
    await recoverTurns()
  }
  const work = async (): Promise<void> => {
    try {
      await sweep()
      onSwept()
    } catch (error) {
      onSwept(error)
      onError(error)
    }
  }
  // LG1022: a sweep may take longer than a lease. It reports the errors of the store itself.
  const stop = repeat(intervalMs, work, () => renew().catch(() => undefined))
  return { drain: () => void (isDraining = true), close: stop }
}

/** How long data is kept. What has no limit is kept forever. */
export interface RetentionOptions extends RetentionLimits {
  /** The interval at which old data is removed, in ms. Default: one hour. */
  readonly intervalMs?: number
}

export interface RetentionSweeperOptions extends RetentionOptions {
  readonly backend: LazyBackend
  /** Whether a chat must not be removed, because a live session of this process is open. */
  readonly isInUse: (chat: AppChatRef) => boolean
  /** Whether the sessions of all chats are in the store. Otherwise it cannot tell which chats exist. */
  readonly ownsSessions: boolean
  readonly onRemoved: (chat: AppChatRef) => void
  readonly onError: (error: unknown) => void
}

const HOUR_MS = 3_600_000

/** Removes old data. `drain` ends the current run after its current step. */
export function startRetention(options: RetentionSweeperOptions): Sweeper {
  const { backend, onError, intervalMs = HOUR_MS, ownsSessions, ...limits } = options
  const closed = new AbortController()
  const { signal } = closed
  /** Entries of the chat list without a chat, found by the last run. */
  let orphans: ReadonlySet<string> = new Set()

  const stop = repeat(intervalMs, async () => {
    if (signal.aborted) return
    try {
      const { store, ledger, appName } = await backend.get()
      const retention = retentionOf(store)
      await runRetention(retention, { ...limits, appName, leaseMs: ledger.leaseMs, signal })
      if (!ownsSessions || limits.chatsMs === undefined) return
      orphans = await removeOrphans(retention, { appName, found: orphans, signal })
    } catch (error) {
      onError(error)
    }
  })
  const drain = (): void => closed.abort()
  return {
    drain,
    close: () => {
      drain()
      return stop()
    },
  }
}

/** How many approvals of one principal are resumed at once. */
const MAX_PER_PRINCIPAL = 4
/** The longest delay between two attempts, in sweeps. */
const MAX_SWEEPS = 16

interface Attempt {
  readonly approval: Approval
  readonly tries: number
  phase: 'queued' | 'running' | 'over'
  /** The earliest time of the next attempt, by the clock of this process. */
  notBefore: number
}

/**
 * The approvals that sweeps resume. Each approval is resumed by one attempt at a time, few of one principal run at once, and the delay
 * between attempts without progress doubles, so that stuck approvals do not delay others.
 */
export class RecoveryQueue {
  readonly #resume: (approval: Approval) => Promise<void>
  readonly #sweepMs: number
  readonly #clock: () => number
  readonly #attempts = new Map<string, Attempt>()

  /** `resume` resumes the turn of an approval until it ends, and never rejects. */
  constructor(
    resume: (approval: Approval) => Promise<void>,
    sweepMs: number,
    clock: () => number = () => performance.now(),
  ) {
    this.#resume = resume
    this.#sweepMs = sweepMs
    this.#clock = clock
  }

  /** Returns the ids of approvals that are being resumed or whose next attempt is not due. */
  deferredIds(): string[] {
    const now = this.#clock()
    const waiting: string[] = []
    for (const [id, { phase, notBefore }] of this.#attempts) {
      if (phase !== 'over' || notBefore > now) waiting.push(id)
      // An approval that sweeps have not found for a while has made progress.
      else if (now - notBefore > this.#sweepMs * MAX_SWEEPS) this.#attempts.delete(id)
    }
    return waiting
  }

  /** Queues an approval. It is resumed when fewer than the maximum of its principal run. */
  take(approval: Approval): void {
    const { id, state, chat } = approval
    const before = this.#attempts.get(id)
    if (before && before.phase !== 'over') return
    // An approval whose state has changed starts without a delay.
    const isSame = before?.approval.state.name === state.name
    const tries = isSame ? before.tries + 1 : 1
    this.#attempts.set(id, { approval, tries, phase: 'queued', notBefore: 0 })
    this.#startNext(chat.principalId)
  }

  #startNext(principalId: string): void {
    const own = [...this.#attempts.values()].filter(
      ({ approval, phase }) => phase !== 'over' && approval.chat.principalId === principalId,
    )
    const next = own.find(({ phase }) => phase === 'queued')
    if (!next || own.filter(({ phase }) => phase === 'running').length >= MAX_PER_PRINCIPAL) return
    next.phase = 'running'
    void this.#resume(next.approval).finally(() => {
      next.phase = 'over'
      const sweeps = Math.min(2 ** (next.tries - 1), MAX_SWEEPS)
      next.notBefore = this.#clock() + sweeps * this.#sweepMs
      this.#startNext(principalId)
    })
  }
}
