export type LiveStatus = 'connecting' | 'open' | 'reconnecting' | 'closed'

/** What a live connection tells beside ADK's events. */
export interface LiveHooks {
  readonly onCancelled: (toolCallIds: readonly string[]) => void
  readonly onInterrupted: () => void
  readonly onStatus: (status: LiveStatus) => void
  /** Hears of what was survived: odd frames, failed attempts. */
  readonly onError: (error: unknown) => void
}
