import type { ApprovalChat } from '../approvals/approval.ts'

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
    owner: Omit<ApprovalChat, 'chatId'>,
    chatIds: readonly string[],
  ): Promise<Map<string, ChatEntry>>
  /** Stores the title and the creation time of a chat. */
  note(chat: ApprovalChat, note: ChatNote): Promise<void>
  /** Sets the name of a chat. The name stays when the chat is cleared. */
  rename(chat: ApprovalChat, name: string): Promise<void>
  /** Sets the agent of a chat if it has none. Returns the agent of the chat. */
  assignAgent(chat: ApprovalChat, agent: string): Promise<string>
  /** Removes the title and the creation time, because the first message was replaced. Name and agent stay. */
  forgetNote(chat: ApprovalChat): Promise<void>
  drop(chat: ApprovalChat): Promise<void>
}
