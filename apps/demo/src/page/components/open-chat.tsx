import type { ChatLocation } from '../hooks/use-chat-location.ts'
import type { InboxState } from '../hooks/use-inbox.ts'
import { useSavedChat } from '../hooks/use-saved-chat.ts'
import { useTexts } from '../i18n/language.tsx'
import { Chat } from './chat.tsx'
import { Notice } from './notice.tsx'

interface OpenChatProps {
  readonly location: ChatLocation
  readonly inbox: InboxState
  readonly onNewChat: () => void
  /** Something was said in it. */
  readonly onSaid: (text: string) => void
}

/** A chat from the moment it is opened: first read, then shown. */
export function OpenChat({ location, inbox, onNewChat, onSaid }: OpenChatProps) {
  const texts = useTexts()
  const loading = useSavedChat(location)
  switch (loading.state) {
    case 'loading':
      return (
        <main className="pause" aria-busy="true">
          <p role="status">{texts.loading}</p>
        </main>
      )
    case 'missing':
      return (
        <main className="pause">
          <Notice
            title={texts.missingTitle}
            text={texts.missingText}
            action={texts.newChat}
            onAction={onNewChat}
          />
        </main>
      )
    case 'failed':
      return (
        <main className="pause">
          <Notice
            title={texts.unreadableTitle}
            text={texts.unreadableText}
            action={texts.reload}
            onAction={() => window.location.reload()}
          />
        </main>
      )
    case 'ready':
      return <Chat id={location.id} saved={loading.chat} inbox={inbox} onSaid={onSaid} />
  }
}
