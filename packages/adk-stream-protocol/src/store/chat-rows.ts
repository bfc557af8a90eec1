import { type AppChatRef, LIVE_LOCK } from '../shared/chat-ref.ts'
import type { HeldLock, WorkerLease } from '../approvals/approval-store.ts'
import type { BrowserCall, PendingBrowserCall } from './browser-call-store.ts'
import type { ChatEntry } from './chat-store.ts'
import type { Orphans } from './retention-store.ts'
import { checkName } from './session-key.ts'

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

/** A row of the chat list. */
export interface ChatRow {
  readonly chat_id: string
  readonly name: string | null
  readonly title: string | null
  readonly created_at: number | null
  readonly agent: string | null
}

export function decodeChatEntry({ name, title, created_at: createdAt, agent }: ChatRow): ChatEntry {
  return {
    ...(name !== null && { name }),
    ...(title !== null && { title }),
    ...(createdAt !== null && { createdAt }),
    ...(agent !== null && { agent }),
  }
}

/** A row of a call that waits for a client. */
export interface BrowserCallRow {
  readonly principal_id: string
  readonly chat_id: string
  readonly tool_call_id: string
  readonly message_id: string
}

/** A row of a call that waits for a client, of any application. */
export interface PendingBrowserCallRow extends BrowserCallRow {
  readonly app_name: string
  readonly deadline: number
}

export function decodePendingBrowserCall(row: PendingBrowserCallRow): PendingBrowserCall {
  return { ...decodeBrowserCall(row.app_name, row), deadline: row.deadline }
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

export function decodeBrowserCall(appName: string, row: BrowserCallRow): BrowserCall {
  return {
    chat: { appName, principalId: row.principal_id, chatId: row.chat_id },
    messageId: row.message_id,
    toolCallId: row.tool_call_id,
  }
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
