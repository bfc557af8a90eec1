import type { AuditFilter, ReadApproval } from '../approvals/approval-store.ts'
import type { HeldLock, OwnLock, WorkerLease } from '../locks/lock-store.ts'
import type { Approval, MovedFields } from '../approvals/approval.ts'
import type { QuestionKind } from '../protocol/question-terms.ts'
import { QUESTION_KINDS } from '../protocol/question-terms.ts'
import type { AuditEntry, AuditRecord } from '../approvals/audit-entry.ts'
import { currentStep } from '../approvals/deciders.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'
import { OPEN_RUN_LOCK } from '../locks/lock-names.ts'
import { chatColumns, checkName } from './keys.ts'
import type { OrphanPage, Orphans } from './store.ts'
import { decodeJson, encodeJson } from './stored-json.ts'

/** A part of an SQL condition with the values of its parameters, or false if it is not wanted. Each `?` stands for a value. */
export type Condition<Value> = false | readonly [condition: string, ...values: Value[]]

/** Joins the wanted conditions with AND. */
export function joinConditions<Value>(conditions: readonly Condition<Value>[]): {
  readonly conditions: string
  readonly values: Value[]
} {
  const wanted = conditions.filter((condition) => condition !== false)
  return {
    conditions: wanted.map(([condition]) => condition).join(' AND ') || 'TRUE',
    values: wanted.flatMap(([, ...values]) => values),
  }
}

/** Returns the condition that a column has this name, if there is one. */
export function named(column: string, what: string, name: string | undefined): Condition<string> {
  return name !== undefined && [`${column} = ?`, checkName(what, name)]
}

/** Returns the condition that a row belongs to this chat, if there is one. */
export function ofChat(chat: AppChatRef | undefined): Condition<string> {
  return (
    chat !== undefined && [
      'app_name = ? AND principal_id = ? AND chat_id = ?',
      ...chatColumns(chat),
    ]
  )
}

/** Returns the conditions of an audit filter, except its times and pages. */
export function selectAudit(filter: AuditFilter): Condition<string>[] {
  const { appName, approvalId, chat } = filter
  return [
    named('app_name', 'appName', appName),
    named('approval_id', 'approvalId', approvalId),
    ofChat(chat),
  ]
}

/** How much lease time passes at most between two renewals, by default, in ms. A third of the default lease. */
export const MAX_GAP_MS = 5_000

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

/** Groups the rows of workers. `now` is the time of the lease clock for people. */
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

type Asked = Omit<Approval, keyof MovedFields>

/** Encodes the fields that never change. */
export function encodeAsked({
  votes: _votes,
  links: _links,
  refusedInChat: _refusedInChat,
  state: _state,
  version: _version,
  ...asked
}: Approval): string {
  return encodeJson(asked satisfies Asked)
}

/** Encodes the fields that transitions change. */
export function encodeMoved(approval: Approval): string {
  const { votes, links = [], refusedInChat, state, version } = approval
  const moved: MovedFields = {
    votes,
    ...(links.length > 0 && { links }),
    ...(refusedInChat && { refusedInChat }),
    state,
    version,
  }
  return encodeJson(moved)
}

export function decodeTimed(row: TimedRow | undefined): ReadApproval {
  const { asked, moved, now = Number.NaN } = row ?? {}
  if (typeof asked !== 'string' || typeof moved !== 'string') return { approval: undefined, now }
  return { approval: decodeApproval({ asked, moved }), now }
}

export function decodeApproval({ asked, moved }: ApprovalRow): Approval {
  // `encodeAsked` and `encodeMoved` wrote the columns.
  return { ...(decodeJson(asked) as Asked), ...(decodeJson(moved) as MovedFields) }
}

export function decodeAudit({ seq, entry }: AuditRow): AuditRecord {
  // `encodeJson` wrote the entry.
  return { seq, ...(decodeJson(entry) as AuditEntry) }
}

/**
 * Returns the names under which a pending approval is listed: those who can decide it now, and those who can withdraw
 * their vote. The owner of its chat is left out, because lists find the approvals of a person's own chats by the chat.
 */
export function deciderNames(approval: Approval): Set<string> {
  const { chat, state, terms, votes } = approval
  if (state.name !== 'requested') return new Set()
  const step = terms.chain[currentStep(approval) ?? -1]
  const voters = votes.map(({ principalId }) => principalId)
  const others = [...(step?.principals ?? []), ...voters].filter((id) => id !== chat.principalId)
  return new Set(namesOf(others, step?.roles ?? []))
}

/** Returns the stored names of principals and roles. */
export function namesOf(principals: readonly string[], roles: readonly string[]): string[] {
  // As JSON, so that a text column returns any name unchanged.
  return [
    ...principals.map((name) => JSON.stringify(['principal', name])),
    ...roles.map((name) => JSON.stringify(['role', name])),
  ]
}

/** A session whose chat was not used for a while. */
export interface UnusedRow {
  readonly app_name: string
  readonly user_id: string
  readonly session_id: string
}

export function decodeUnused(row: UnusedRow): AppChatRef {
  return { appName: row.app_name, principalId: row.user_id, chatId: row.session_id }
}

/** An entry of the chat list, and whether it has no chat. */
export interface OrphanRow {
  readonly principal_id: string
  readonly chat_id: string
  readonly is_orphan: boolean | number
}

/** Returns the values that select a page of the chat list. */
export function orphanValues({ appName, after, limit }: OrphanPage): (string | number)[] {
  return [checkName('appName', appName), after?.principalId ?? '', after?.chatId ?? '', limit]
}

export function decodeOrphans({ appName, limit }: OrphanPage, rows: readonly OrphanRow[]): Orphans {
  const chats = rows.map((row) => ({
    appName,
    principalId: row.principal_id,
    chatId: row.chat_id,
  }))
  return {
    orphans: chats.filter((_, index) => rows[index]?.is_orphan),
    last: rows.length < limit ? undefined : chats.at(-1),
  }
}

/** A row of `chat_locks`. */
export interface OwnLockRow {
  readonly app_name: string
  readonly principal_id: string
  readonly chat_id: string
  readonly token: string
}

export function decodeLock(row: OwnLockRow): OwnLock {
  const { app_name: appName, principal_id: principalId, chat_id: chatId, token } = row
  return { chat: { appName, principalId, chatId }, token }
}

/** After this time without a renewal, the locks of a worker are removed, in ms. */
export const LOCK_AGE_MS = 86_400_000

/** Returns the SQL condition for the app of a lock: the lock of a turn, or of a live session, in the app of a row. */
export function ofAppOrOpenRun(appName: string): string {
  return `IN (${appName}, ${appName} || '${OPEN_RUN_LOCK}')`
}

/** Returns the SQL condition that a row belongs to the chat of a session. */
export function sameChat(table: string, app = '= sessions.app_name'): string {
  return `${table}.app_name ${app} AND ${table}.principal_id = sessions.user_id AND ${table}.chat_id = sessions.session_id`
}

/** Returns the SQL condition that the chat of an entry of the chat list has a session or a lock. `schema` ends with a dot. */
export function hasChat(schema = ''): string {
  return `(
    EXISTS (
      SELECT 1 FROM ${schema}sessions
      WHERE sessions.app_name = chats.app_name AND user_id = chats.principal_id AND session_id = chats.chat_id)
    OR EXISTS (
      SELECT 1 FROM ${schema}chat_locks held WHERE held.app_name ${ofAppOrOpenRun('chats.app_name')}
      AND held.principal_id = chats.principal_id AND held.chat_id = chats.chat_id))`
}

/** Returns the name of a kind for the text of a statement, which contains no names of others. */
export function toOwnLiteral(kind: QuestionKind): string {
  return QUESTION_KINDS.find((name) => name === kind) ?? ''
}
