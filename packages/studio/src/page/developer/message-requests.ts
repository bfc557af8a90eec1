const listeners = new Set<(text: string) => void>()

/** Sends messages from other parts of the page in the open chat. */
export const messageRequests = {
  send: (text: string): void => {
    for (const listener of listeners) listener(text)
  },
  /** Returns a function that unsubscribes. */
  subscribe: (listener: (text: string) => void): (() => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  },
}
