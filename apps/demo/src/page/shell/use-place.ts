import { useCallback, useState } from 'react'

import { forgetDirectChat, readDirectChat } from '../conversation/direct-chat.ts'
import { keepsChats, useMode } from '../settings/mode.ts'
import { type ChatLocation, useChatLocation } from './use-chat-location.ts'

/**
 * Which conversation is open in the mode that is chosen. The agent's two modes share the chat of the address; Gemini without the
 * agent has a conversation of its own, which ends with the tab.
 */
export function usePlace(onLeave: () => void) {
  const [mode, chooseMode] = useMode()
  const { location, startNew: startChat, open: openChat } = useChatLocation()
  const [direct, setDirect] = useState(findDirect)
  const kept = keepsChats(mode)
  const startNew = useCallback(() => {
    onLeave()
    if (kept) return startChat()
    forgetDirectChat()
    setDirect(findDirect())
  }, [kept, startChat, onLeave])
  const open = useCallback(
    (id: string) => {
      onLeave()
      // What is in the list is a chat of the agent.
      if (!kept) chooseMode('sse')
      openChat(id)
    },
    [kept, chooseMode, openChat, onLeave],
  )
  /** Something was said: the address may name the chat from now on. */
  const remember = useCallback((id: string) => void (kept && openChat(id)), [kept, openChat])
  return { place: kept ? location : direct, kept, startNew, open, remember }
}

/** The mode may have been left before the first answer came: then there is nothing to find, and it begins anew. */
function findDirect(): ChatLocation {
  return { id: readDirectChat().id, isNew: true }
}
