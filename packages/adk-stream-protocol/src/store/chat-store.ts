import type { ApprovalChat } from '../approvals/approval.ts'

/** What is known of a chat without reading it. */
export interface ChatNote {
  /** The beginning of the first thing that was said. */
  readonly title: string
  /** When it was said, in ms since 1970. */
  readonly createdAt: number
}

/** A chat's note, what its owner calls it, and its agent, where a bridge has several. */
export type ChatEntry = Partial<ChatNote> & { readonly name?: string; readonly agent?: string }

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
  /** Records the agent of a chat, unless it has one. Returns the agent that the chat has then. */
  assignAgent(chat: ApprovalChat, agent: string): Promise<string>
  /** The chat begins anew: what was noted of its begin no longer holds. Its agent stays. */
  forgetNote(chat: ApprovalChat): Promise<void>
  drop(chat: ApprovalChat): Promise<void>
}
