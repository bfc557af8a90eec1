import type { AdkUIMessage } from 'adk-stream-protocol/client'

/** The messages that the conversation shows. */
export interface ShownChat {
  readonly messages: readonly AdkUIMessage[]
  readonly busy: boolean
}

const listeners = new Set<() => void>()
let current: ShownChat = { messages: [], busy: false }

/** Publishes the shown messages to the inspector, so that the rest of the page does not render with every chunk. */
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
