import { useAdkLabels } from 'adk-stream-protocol/react'

import { chatUrl } from '../shell/use-chat-location.ts'

interface ChatLinkProps {
  readonly chatId: string
  readonly onOpenChat: (chatId: string) => void
}

/** A link to the chat of an approval. */
export function ChatLink({ chatId, onOpenChat }: ChatLinkProps) {
  const { inbox } = useAdkLabels()
  return (
    <a
      href={chatUrl(chatId)}
      onClick={(event) => {
        // Lets the browser open a new tab or window.
        if (event.metaKey || event.ctrlKey || event.shiftKey) return
        event.preventDefault()
        onOpenChat(chatId)
      }}
    >
      {inbox.open}
    </a>
  )
}
