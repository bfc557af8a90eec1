import type { AppChatRef } from '../shared/chat-ref.ts'
import type { BrowserCall } from './browser-call-store.ts'
import type { ChatEntry } from './chat-store.ts'
import { checkName } from './session-key.ts'

/** Returns the columns that identify a chat, in column order. */
export function chatColumns({ appName, principalId, chatId }: AppChatRef): string[] {
  return [
    checkName('appName', appName),
    checkName('principalId', principalId),
    checkName('chatId', chatId),
  ]
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
