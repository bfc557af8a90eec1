import type { ApprovalChat } from '../approvals/approval.ts'

/** A call that waits for the output of a client. */
export interface BrowserCall {
  readonly chat: ApprovalChat
  /** The assistant message whose turn waits. */
  readonly messageId: string
  readonly toolCallId: string
}

/** Which calls wait for clients, and until when; every method is atomic, outlives the process, and is seen by all at once. */
export interface BrowserCallStore {
  /** Gives a call its time; one that has it already keeps it. */
  add(wait: BrowserCall, timeoutMs: number): Promise<void>
  /** These calls have their output. */
  drop(chat: ApprovalChat, toolCallIds: readonly string[]): Promise<void>
  dropChat(chat: ApprovalChat): Promise<void>
  /** Takes calls whose time is over, by the store's clock: nobody else gets them for `leaseMs`. Who has told their end drops them. */
  takeDue(filter: DueBrowserCalls): Promise<BrowserCall[]>
}

export interface DueBrowserCalls {
  readonly appName: string
  readonly leaseMs: number
  readonly limit: number
}
