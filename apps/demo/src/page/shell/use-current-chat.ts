import { useCallback, useState } from 'react'

import { deleteDirectChat, readDirectChat } from '../conversation/direct-chat.ts'
import { storesChats, useMode } from '../settings/mode.ts'
import { type ChatLocation, useChatLocation } from './use-chat-location.ts'

/**
 * The open chat of the chosen mode. Both modes of the agent share the chat in the URL. The mode without the agent has its own chat,
 * which ends with the tab.
 */
export function useCurrentChat(onLeave: () => void) {
  const [mode, chooseMode] = useMode()
  const { location, startNew: startChat, open: openChat } = useChatLocation()
  const [direct, setDirect] = useState(findDirect)
  const isStored = storesChats(mode)
  const startNew = useCallback(() => {
    onLeave()
    if (isStored) return startChat()
    deleteDirectChat()
    setDirect(findDirect())
  }, [isStored, startChat, onLeave])
  const open = useCallback(
    (id: string) => {
      onLeave()
      // The list contains chats of the agent only.
      if (!isStored) chooseMode('sse')
      openChat(id)
    },
    [isStored, chooseMode, openChat, onLeave],
  )
  /** Puts the chat into the URL after its first message. */
  const remember = useCallback(
    (id: string) => void (isStored && location.isNew && openChat(id)),
    [isStored, location.isNew, openChat],
  )
  return { location: isStored ? location : direct, isStored, startNew, open, remember }
}

/** Returns the stored chat without the agent, or a new one if none was stored. */
function findDirect(): ChatLocation {
  return { id: readDirectChat().id, isNew: true }
}
