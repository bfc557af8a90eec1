import type { AppChatRef } from '../shared/chat-ref.ts'

/** The title and the creation time of a chat, derived from its first message. */
export interface ChatNote {
  /** The beginning of the first message. */
  readonly title: string
  /** When the first message was sent, in ms since 1970. */
  readonly createdAt: number
}

/** An entry of the chat list: the derived title, the name that the owner chose, and the agent if the bridge has several. */
export type ChatEntry = Partial<ChatNote> & { readonly name?: string; readonly agent?: string }

/** Stores what the chat list shows, so that a session is read for it only once. */
export interface ChatStore {
  /** Returns the entries of these chats of a principal, by chat id. Chats without an entry are missing from the map. */
  find(
    owner: Omit<AppChatRef, 'chatId'>,
    chatIds: readonly string[],
  ): Promise<Map<string, ChatEntry>>
  /** Stores the title and the creation time of a chat. */
  note(chat: AppChatRef, note: ChatNote): Promise<void>
  /** Sets the name of a chat. The name stays when the chat is cleared. */
  rename(chat: AppChatRef, name: string): Promise<void>
  /** Sets the agent of a chat if it has none. Returns the agent of the chat. */
  assignAgent(chat: AppChatRef, agent: string): Promise<string>
  /** Removes the title and the creation time, because the first message was replaced. Name and agent stay. */
  forgetNote(chat: AppChatRef): Promise<void>
  drop(chat: AppChatRef): Promise<void>
}
