import type { AdkUIMessage } from 'adk-stream-protocol/client'

/** What the conversation shows right now. */
export interface ShownChat {
  readonly messages: readonly AdkUIMessage[]
  readonly busy: boolean
}

const listeners = new Set<() => void>()
let current: ShownChat = { messages: [], busy: false }

/** Tells those who look behind the conversation what it shows: they render with it, and what is around it does not. */
export const shownChat = {
  show: (chat: ShownChat): void => {
    current = chat
    for (const listener of listeners) listener()
  },
  read: (): ShownChat => current,
  subscribe: (listener: () => void): (() => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  },
}
