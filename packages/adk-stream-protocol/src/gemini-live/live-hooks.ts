import type { LlmRequest } from '@google/adk'
import type { Part } from '@google/genai'

/** `moved`: another server continues the session. */
export type LiveStatus = 'connecting' | 'open' | 'reconnecting' | 'closed' | 'moved'

/** Events of a live session that ADK does not report, or reports too late. */
export interface LiveHooks {
  /** An agent is about to connect with this request. The hook may change the request. */
  readonly onConnecting: (request: LlmRequest) => void
  readonly onConnected: () => void
  /** The model cancelled calls. ADK receives none of them afterwards; it may not have received some of them before. */
  readonly onCancelled: (toolCallIds: readonly string[]) => void
  /** The model produced output. Called at once; ADK's events carry the same `Part` objects later. */
  readonly onOutput: (parts: readonly Part[]) => void
  /** The model was interrupted. Called at once: ADK drops the flag for text, and delivers it after buffered audio. */
  readonly onInterrupted: () => void
  /**
   * The connection was lost during the model's reply. ADK then yields the end of that turn, marked as interrupted, and after it the reply
   * from its beginning.
   */
  readonly onReplyLost: () => void
  /** A message closed the connection each time it was sent. It is dropped: no reply to it will come. */
  readonly onDropped: (error: unknown) => void
  readonly onStatus: (status: LiveStatus) => void
  /** Gemini sent a resumption handle. */
  readonly onHandle: () => void
  /** An error that the session recovered from: an invalid frame, a failed attempt, a message that the SDK rejected. */
  readonly onError: (error: unknown) => void
}
