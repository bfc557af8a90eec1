import type { HeldLock, ReadApproval, WorkerLease } from '../approvals/approval-store.ts'
import type { Approval } from '../approvals/approval.ts'
import type { AuditEntry, AuditRecord } from '../approvals/audit-entry.ts'
import { currentStep } from '../approvals/deciders.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'
import { LIVE_LOCK } from '../shared/chat-ref.ts'
import { checkName } from './session-key.ts'
import type { Orphans } from './store.ts'
import { decodeJson, encodeJson } from './stored-json.ts'

/** Returns the columns that identify a chat, in column order. */
export function chatColumns({ appName, principalId, chatId }: AppChatRef): string[] {
  return [
    checkName('appName', appName),
    checkName('principalId', principalId),
    checkName('chatId', chatId),
  ]
}

/** Returns the SQL condition for the app of a lock: the lock of a turn, or of a live session, in the app of a row. */
export function ofAppOrLive(appName: string): string {
  return `IN (${appName}, ${appName} || '${LIVE_LOCK}')`
}

/** A row of a worker, once for each lock that it holds. */
export interface WorkerRow {
  readonly worker: string
  /** Negative if the worker has ended its lease. Null if it has locks but has not renewed its lease. */
  readonly beat_at: number | null
  readonly app_name: string | null
  readonly principal_id: string | null
  readonly chat_id: string | null
  readonly background: number | boolean | null
  readonly locked_at: number | null
}

/** Groups the rows of workers. `now` is the time of the lease clock. */
export function decodeWorkers(rows: readonly WorkerRow[], now: number): WorkerLease[] {
  const workers = new Map<string, WorkerLease & { readonly locks: HeldLock[] }>()
  for (const row of rows) {
    const beatAt = row.beat_at ?? row.locked_at ?? 0
    const known = workers.get(row.worker) ?? {
      worker: row.worker,
      silentMs: Math.max(0, now - Math.max(Math.abs(beatAt), row.locked_at ?? 0)),
      ended: beatAt < 0,
      locks: [],
    }
    workers.set(row.worker, known)
    const { app_name: appName, principal_id: principalId, chat_id: chatId } = row
    if (appName === null || principalId === null || chatId === null) continue
    const chat = { appName, principalId, chatId }
    const heldMs = Math.max(0, now - (row.locked_at ?? now))
    known.locks.push({ chat, background: Boolean(row.background), heldMs })
  }
  return [...workers.values()]
}

/** An entry of the chat list, and whether it has no chat. */
export interface OrphanRow {
  readonly principal_id: string
  readonly chat_id: string
  readonly is_orphan: boolean | number
}

/** Reads a page of up to `limit` entries. */
export function readOrphans(appName: string, rows: readonly OrphanRow[], limit: number): Orphans {
  const chats = rows.map(({ principal_id: principalId, chat_id: chatId, is_orphan: isOrphan }) => ({
    chat: { appName, principalId, chatId },
    isOrphan: Boolean(isOrphan),
  }))
  return {
    orphans: chats.flatMap(({ chat, isOrphan }) => (isOrphan ? chat : [])),
    last: rows.length < limit ? undefined : chats.at(-1)?.chat,
  }
}

export interface ApprovalRow {
  readonly asked: string
  readonly moved: string
}

/** The time, and an approval if there is one. */
export interface TimedRow {
  readonly asked?: string | null
  readonly moved?: string | null
  readonly now: number
}

export interface AuditRow {
  readonly seq: number
  readonly entry: string
}

type Moved = Pick<Approval, 'votes' | 'links' | 'state' | 'version'>

type Asked = Omit<Approval, keyof Moved>

/** Encodes the fields that never change. */
export function encodeAsked({
  votes: _votes,
  links: _links,
  state: _state,
  version: _version,
  ...asked
}: Approval): string {
  return encodeJson(asked satisfies Asked)
}

/** Encodes the fields that transitions change. */
export function encodeMoved({ votes, links = [], state, version }: Approval): string {
  const moved: Moved = { votes, ...(links.length > 0 && { links }), state, version }
  return encodeJson(moved)
}

export function decodeTimed(row: TimedRow | undefined): ReadApproval {
  const { asked, moved, now = Number.NaN } = row ?? {}
  if (typeof asked !== 'string' || typeof moved !== 'string') return { approval: undefined, now }
  return { approval: decodeApproval({ asked, moved }), now }
}

export function decodeApproval({ asked, moved }: ApprovalRow): Approval {
  // `encodeAsked` and `encodeMoved` wrote the columns.
  return { ...(decodeJson(asked) as Asked), ...(decodeJson(moved) as Moved) }
}

export function decodeAudit({ seq, entry }: AuditRow): AuditRecord {
  // `encodeJson` wrote the entry.
  return { seq, ...(decodeJson(entry) as AuditEntry) }
}

/**
 * Returns the names under which a pending approval is listed: those who can decide it now, and those who can withdraw
 * their vote.
 */
export function deciderNames(approval: Approval): Set<string> {
  const { state, terms, votes } = approval
  if (state.name !== 'requested') return new Set()
  const step = terms.chain[currentStep(approval) ?? -1]
  const voters = votes.map(({ principalId }) => principalId)
  return new Set(namesOf([...(step?.principals ?? []), ...voters], step?.roles ?? []))
}

/** Returns the stored names of principals and roles. */
export function namesOf(principals: readonly string[], roles: readonly string[]): string[] {
  // As JSON, so that a text column returns any name unchanged.
  return [
    ...principals.map((name) => JSON.stringify(['principal', name])),
    ...roles.map((name) => JSON.stringify(['role', name])),
  ]
}
