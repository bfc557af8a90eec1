import { type AppChatRef, LIVE_LOCK } from '../shared/chat-ref.ts'
import type { BrowserCall } from './browser-call-store.ts'
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
