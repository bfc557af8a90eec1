import type { LlmRequest } from '@google/adk'
import type { Part } from '@google/genai'

export type LiveStatus = 'connecting' | 'open' | 'reconnecting' | 'closed'

/** What a live connection tells beside ADK's events. */
export interface LiveHooks {
  /** An agent is about to be connected with this request, which may still be changed. */
  readonly onConnecting: (request: LlmRequest) => void
  readonly onConnected: () => void
  /** The model took calls back. None of them is delivered afterwards; some may never have been. */
  readonly onCancelled: (toolCallIds: readonly string[]) => void
  /** The model said something, told at once: these very parts come with ADK's events. */
  readonly onSpoken: (parts: readonly Part[]) => void
  /** The model fell silent, told at once: ADK loses the mark for text, and delivers it behind buffered audio. */
  readonly onInterrupted: () => void
  /**
   * The model was cut off by the end of its connection. The end of that turn follows among ADK's events, marked as interrupted, and
   * then the answer anew.
   */
  readonly onCutOff: () => void
  /** Something that was said to the model ended the connection each time, and is not said again: no answer to it comes. */
  readonly onGivenUp: (error: unknown) => void
  readonly onStatus: (status: LiveStatus) => void
  /** What went wrong and was survived: odd frames, failed attempts, messages that had to be given up. */
  readonly onError: (error: unknown) => void
}
