import type { AppChatRef } from '../shared/chat-ref.ts'

/** A call of a browser tool that waits for the result of a client. */
export interface BrowserCall {
  readonly chat: AppChatRef
  /** The assistant message whose turn waits for the result. */
  readonly messageId: string
  readonly toolCallId: string
}

/**
 * Stores the calls that wait for a client, with their deadlines. Every method is atomic. Its effect survives a crash
 * of the process and is visible to all processes at once.
 */
export interface BrowserCallStore {
  /** Adds a call with its deadline. Does nothing if the call is already stored. */
  add(call: BrowserCall, timeoutMs: number): Promise<void>
  /** Removes calls that have a result. */
  drop(chat: AppChatRef, toolCallIds: readonly string[]): Promise<void>
  dropChat(chat: AppChatRef): Promise<void>
  /**
   * Returns calls whose deadline has passed, by the clock of the store. No other process gets them for `leaseMs`. The
   * caller removes them with `drop` after it has reported the timeout.
   */
  takeDue(filter: DueBrowserCalls): Promise<BrowserCall[]>
  /** Lists the calls that wait, of one chat or of all chats, earliest deadline first. For timelines and `doctor`. */
  list?(filter: {
    readonly chat?: AppChatRef
    readonly limit: number
  }): Promise<PendingBrowserCall[]>
}

/** A browser call with its deadline, in ms since 1970. */
export interface PendingBrowserCall extends BrowserCall {
  readonly deadline: number
}

/** Selects browser calls whose deadline has passed. */
export interface DueBrowserCalls {
  readonly appName: string
  readonly leaseMs: number
  readonly limit: number
}
