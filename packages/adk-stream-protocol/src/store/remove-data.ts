import { setImmediate as yieldToEventLoop, setTimeout as delay } from 'node:timers/promises'

import type { BaseSessionService } from '@google/adk'
import type { AppChatRef } from '../shared/chat-ref.ts'
import type { Orphans, RetentionStore, Store } from './store.ts'
import type { Owner } from './keys.ts'
import { StoreError } from './store-error.ts'

/** How long data is kept. What has no limit is kept forever. */
export interface RetentionLimits {
  /** For how long a chat must not have been used before it is removed, in ms. Default: chats are kept. */
  readonly chatsMs?: number
  /**
   * How old audit entries are when they are removed, in ms. Approvals are removed with their last entry. Default: the audit
   * record is kept.
   */
  readonly auditMs?: number
}

export interface RetentionRun extends RetentionLimits {
  readonly leaseMs: number
  /** Default: the chats of all applications. */
  readonly appName?: string
  /** Whether a chat must not be removed now. */
  readonly isInUse?: (chat: AppChatRef) => boolean
  readonly onRemoved?: (chat: AppChatRef) => void
  /** Ends the run after the current step. */
  readonly signal?: AbortSignal
}

/** What a run of retention has removed. */
export interface RemovedData {
  readonly chats: number
  readonly auditEntries: number
  readonly approvals: number
}

const BATCH = 200
/** How many chats are removed at the same time, and for how long without a pause, in ms. */
const AT_ONCE = 4
const SLICE_MS = 5

/** Removes what is older than the limits, in short transactions. */
export async function runRetention(store: RetentionStore, run: RetentionRun): Promise<RemovedData> {
  const { chatsMs, auditMs: olderThanMs, signal } = run
  // At the same time, because chats may become old as fast as they are removed.
  const [chats, [auditEntries, approvals]] = await Promise.all([
    chatsMs === undefined ? 0 : removeUnused(store, { ...run, unusedMs: chatsMs }),
    olderThanMs === undefined ? NOTHING : removeRecord(store, olderThanMs, signal),
  ])
  if (chatsMs !== undefined || olderThanMs !== undefined) await store.removeLocks()
  if (chats + auditEntries + approvals > 0) await store.overwriteRemoved?.()
  return { chats, auditEntries, approvals }
}

const NOTHING = [0, 0] as const

/** Removes old audit entries, and then the approvals without any. Returns their numbers. */
async function removeRecord(
  store: RetentionStore,
  olderThanMs: number,
  signal?: AbortSignal,
): Promise<readonly [number, number]> {
  const limit = BATCH
  const entries = await repeat(() => store.removeAudit({ olderThanMs, limit }), signal)
  return [entries, await repeat(() => store.removeApprovals(limit), signal)]
}

async function removeUnused(
  store: RetentionStore,
  run: RetentionRun & { readonly unusedMs: number },
): Promise<number> {
  const { appName, unusedMs, leaseMs, isInUse, onRemoved, signal } = run
  const filter = { unusedMs, leaseMs, limit: BATCH, ...(appName !== undefined && { appName }) }
  return repeat(async () => {
    let removed = 0
    let yieldedAt = performance.now()
    const chats = (await store.listUnused(filter)).values()
    const removeNext = async (): Promise<void> => {
      for (const chat of chats) {
        if (signal?.aborted === true) return
        if (isInUse?.(chat) === true) continue
        if (await store.removeChat(chat, { unusedMs, leaseMs })) {
          removed += 1
          onRemoved?.(chat)
        }
        // With one removal per round of the event loop, a busy server would create chats faster than it removes them.
        if (performance.now() - yieldedAt < SLICE_MS) continue
        await yieldToEventLoop()
        yieldedAt = performance.now()
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, removeNext))
    return removed
  }, signal)
}

/**
 * Finds the entries of the chat list without a chat. Removes those that were found before: an entry may be written shortly before its
 * chat. Returns the ids of the others.
 */
export async function removeOrphans(
  store: RetentionStore,
  { appName, found, signal }: OrphanRun,
): Promise<Set<string>> {
  const left = new Set<string>()
  for (let after: AppChatRef | undefined; ;) {
    const page: Orphans | undefined = await store.listOrphans?.({ appName, after, limit: BATCH })
    for (const chat of page?.orphans ?? []) {
      const id = JSON.stringify([chat.principalId, chat.chatId])
      if (found.has(id)) await store.removeOrphan?.(chat)
      else if (left.size < MAX_ORPHANS) left.add(id)
    }
    after = page?.last
    if (!after || signal?.aborted === true) break
    await yieldToEventLoop()
  }
  if (found.size > 0) await store.overwriteRemoved?.()
  return left
}

const MAX_ORPHANS = 10_000

export interface OrphanRun {
  readonly appName: string
  /** What the last run returned. */
  readonly found: ReadonlySet<string>
  readonly signal?: AbortSignal
}

/** Repeats a step until it removes nothing. Returns the sum. */
async function repeat(step: () => Promise<number>, signal?: AbortSignal): Promise<number> {
  for (let sum = 0; ;) {
    if (signal?.aborted === true) return sum
    const removed = await step()
    if (removed === 0) return sum
    sum += removed
    await yieldToEventLoop()
  }
}

export interface PrincipalDeletion extends Owner {
  /**
   * What happens to the approvals of the principal's chats and their audit entries. `keep` leaves them unchanged, as proof of
   * what was allowed. `remove-contents` removes approvals and the contents of entries. Only the hashes stay, so that the
   * record can be verified.
   */
  readonly audit: 'keep' | 'remove-contents'
  readonly leaseMs: number
  /** How long to wait for running calls and turns, in ms. */
  readonly waitMs: number
  /** The session service of the application, if it is not that of the store. */
  readonly sessions?: BaseSessionService
  /** Stops the turn and the live session of a chat in this process. */
  readonly stop?: (chat: AppChatRef) => Promise<void>
  /** Cancels the pending approvals of a chat. Default: in the store. */
  readonly cancel?: (chat: AppChatRef) => Promise<unknown>
  readonly onRemoved?: (chat: AppChatRef) => void
}

const RETRY_MS = 50

/** Returns the part of a store that removes data. */
export function retentionOf({ retention }: Store): RetentionStore {
  if (retention) return retention
  throw new StoreError(
    'invalid',
    'The store cannot remove old data. Implement `retention` of the interface `Store`.',
  )
}

/**
 * Deletes all chats, user state, browser calls and titles of a principal, and approvals as `audit` says. Throws `busy` if a
 * turn or call still runs after `waitMs`; what was deleted stays deleted. Returns the number of chats.
 */
export async function deletePrincipalData(
  store: Store,
  deletion: PrincipalDeletion,
): Promise<number> {
  const retention = retentionOf(store)
  const { appName, principalId, audit, waitMs, sessions = store.sessions } = deletion
  const owner = { appName, principalId }
  const deadline = performance.now() + waitMs
  let deleted = 0
  // A chat may be created meanwhile.
  for (;;) {
    const chats = await listChats(store, sessions, owner)
    if (chats.length === 0) break
    for (const chat of chats) {
      await removeChat(store, retention, { ...deletion, chat, sessions, deadline })
      deletion.onRemoved?.(chat)
      deleted += 1
    }
  }
  await retention.removeOwner(owner)
  if (audit === 'remove-contents') await repeat(() => retention.eraseApprovals(owner, BATCH / 4))
  await retention.overwriteRemoved?.()
  return deleted
}

function delayUntil(time: number): Promise<void> {
  return delay(Math.max(0, time - performance.now()), undefined, { ref: false })
}

/** Lists the chats with a session or with an approval that has not ended. */
async function listChats(
  { approvals }: Store,
  sessions: BaseSessionService,
  owner: Owner,
): Promise<AppChatRef[]> {
  const { appName, principalId } = owner
  const listed = await sessions.listSessions({ appName, userId: principalId })
  const states = ['requested', 'approved', 'executing'] as const
  const open = await approvals.list({ ...owner, states, limit: 1_000 })
  const ids = [...listed.sessions.map(({ id }) => id), ...open.map(({ chat }) => chat.chatId)]
  return [...new Set(ids)].map((chatId) => ({ ...owner, chatId }))
}

interface ChatDeletion extends PrincipalDeletion {
  readonly chat: AppChatRef
  readonly sessions: BaseSessionService
  readonly deadline: number
}

async function removeChat(
  store: Store,
  retention: RetentionStore,
  { chat, sessions, deadline, leaseMs, stop, cancel }: ChatDeletion,
): Promise<void> {
  const reason = 'the data of the principal was deleted'
  const cancelAll = cancel ?? ((key: AppChatRef) => store.approvals.deleteChat(key, reason))
  for (;;) {
    // Cancelled first, so that no decision starts a call after the turn has stopped.
    await cancelAll(chat)
    if (stop) await Promise.race([stop(chat), delayUntil(deadline)])
    await cancelAll(chat)
    if (await retention.removeChat(chat, { leaseMs })) break
    if (performance.now() >= deadline)
      throw new StoreError(
        'busy',
        `A turn or a tool call of the chat ${chat.chatId} still runs, here or in another process. The other chats that were reached are deleted. Call again when it has ended.`,
      )
    await delay(RETRY_MS)
    // If no server runs, nothing else lets the lease of a crashed one expire.
    await store.approvals.tickLeases?.(leaseMs / 3)
  }
  const { appName, principalId: userId, chatId: sessionId } = chat
  if (sessions !== store.sessions) await sessions.deleteSession({ appName, userId, sessionId })
}
