import { useEffect } from 'react'

import { watchChat } from '../chat/chat-events.ts'
import type { Conversation } from '../chat/conversation.ts'
import { catchUp } from '../chat/follow-chat.ts'

/** Keeps the page up to date with what happens to the chat elsewhere. */
export function useWatch(conversation: Conversation, onApprovalsChanged: () => void): void {
  useEffect(() => {
    const leaving = new AbortController()
    // What cannot be read now is read with the next event.
    const follow = () => void catchUp(conversation).catch(() => undefined)
    const returned = () => {
      follow()
      onApprovalsChanged()
    }
    watchChat(
      conversation.chat.id,
      {
        onEvent: ({ type }) => (type === 'turn' ? follow() : onApprovalsChanged()),
        onReturn: returned,
      },
      leaving.signal,
    )
    return () => leaving.abort()
  }, [conversation, onApprovalsChanged])
}
