import type { AppChatRef } from '../shared/chat-ref.ts'

/** A list that `doctor` prints. */
export interface Section {
  readonly title: string
  readonly lines: readonly string[]
  readonly todo?: string
  /** Whether an operator should do something. */
  readonly isProblem?: boolean
}

/** What `doctor` prints about the part of a store that belongs to a feature. */
export interface FeatureReport {
  readonly sections: readonly Section[]
  /** The calls that wait for clients. */
  readonly clientCalls?: readonly { readonly chat: AppChatRef; readonly toolCallId: string }[]
  /** Returns the id of the message that a chat is writing. */
  readonly findRunning?: (chat: AppChatRef) => Promise<string | undefined>
  /** Returns lines about an approval. */
  readonly describeApproval?: (appName: string, approvalId: string) => Promise<string[]>
}

/** What a report is about. `appName`: undefined for all applications. */
export interface ReportOptions {
  readonly appName: string | undefined
  readonly now: number
  readonly leaseMs: number
}

export function nameChat({ chatId, principalId }: AppChatRef): string {
  return `chat ${chatId} of ${principalId}`
}

export function formatTime(at: number): string {
  return new Date(at).toISOString().slice(0, 19).replace('T', ' ')
}
