import { useCallback, useState } from 'react'

import { keepsChats, useMode } from '../settings/mode.ts'
import { type ChatLocation, useChatLocation } from './use-chat-location.ts'

/**
 * Which conversation is open in the mode that is chosen. The agent's two modes share the chat of the address; Gemini without the
 * agent has a conversation of its own, which ends with the page.
 */
export function usePlace(onLeave: () => void) {
  const [mode, chooseMode] = useMode()
  const { location, startNew: startChat, open: openChat } = useChatLocation()
  const [direct, setDirect] = useState(beginDirect)
  const kept = keepsChats(mode)
  const startNew = () => {
    onLeave()
    if (kept) startChat()
    else setDirect(beginDirect())
  }
  const open = useCallback(
    (id: string) => {
      onLeave()
      // What is in the list is a chat of the agent.
      if (!kept) chooseMode('sse')
      openChat(id)
    },
    [kept, chooseMode, openChat, onLeave],
  )
  return { place: kept ? location : direct, startNew, open }
}

function beginDirect(): ChatLocation {
  return { id: crypto.randomUUID(), isNew: true }
}
