import { useAdkLabels } from 'adk-stream-protocol/react'

import type { Chats } from '../chats/chats-store.ts'
import { useLabels } from '../i18n/language.tsx'
import { chatUrl } from '../shell/use-chat-location.ts'

interface ChatLinkProps {
  readonly chatId: string
  /** The chats of the person. */
  readonly chats: Chats['chats']
  readonly onOpenChat: (chatId: string) => void
}

/** A link to the chat of an approval. It names the chat, because a list has several of these links. */
export function ChatLink({ chatId, chats, onOpenChat }: ChatLinkProps) {
  const { inbox } = useAdkLabels()
  const { approvalsPage } = useLabels().shell
  const title = chats.find(({ id }) => id === chatId)?.title ?? ''
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
      {title === '' ? inbox.open : approvalsPage.openChat(title)}
    </a>
  )
}
