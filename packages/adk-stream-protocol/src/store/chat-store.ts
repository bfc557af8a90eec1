import type { ApprovalChat } from '../approvals/approval.ts'

/** What is known of a chat without reading it. */
export interface ChatNote {
  /** The beginning of the first thing that was said. */
  readonly title: string
  /** When it was said, in ms since 1970. */
  readonly createdAt: number
}

/** A chat's note, and what its owner calls it. */
export type ChatEntry = Partial<ChatNote> & { readonly name?: string }

/** What a list of chats shows beside their sessions, so that no session is read for it more than once. */
export interface ChatStore {
  /** What is known of these chats of a principal, by chat id. */
  find(
    owner: Omit<ApprovalChat, 'chatId'>,
    chatIds: readonly string[],
  ): Promise<Map<string, ChatEntry>>
  /** Notes how a chat began. */
  note(chat: ApprovalChat, note: ChatNote): Promise<void>
  /** Names a chat; the name stays when the chat begins anew. */
  rename(chat: ApprovalChat, name: string): Promise<void>
  /** The chat begins anew: what was noted of its begin no longer holds. */
  forgetNote(chat: ApprovalChat): Promise<void>
  drop(chat: ApprovalChat): Promise<void>
}
