import { Chat } from './components/chat.tsx'
import { Header } from './components/header.tsx'
import { Inbox } from './components/inbox.tsx'
import { MusicControl } from './components/music-control.tsx'
import { Notice } from './components/notice.tsx'
import { type ChatLocation, useChatLocation } from './hooks/use-chat-location.ts'
import { type InboxState, useInbox } from './hooks/use-inbox.ts'
import { useSavedChat } from './hooks/use-saved-chat.ts'
import { useTexts } from './i18n/language.tsx'

export function App() {
  const { location, startNew, open } = useChatLocation()
  const inbox = useInbox()
  return (
    <>
      <Header onNewChat={startNew}>
        <MusicControl />
        <Inbox pending={inbox.pending} onChange={inbox.refresh} onOpenChat={open} />
      </Header>
      <OpenChat key={location.id} location={location} inbox={inbox} onNewChat={startNew} />
    </>
  )
}

interface OpenChatProps {
  readonly location: ChatLocation
  readonly inbox: InboxState
  readonly onNewChat: () => void
}

function OpenChat({ location, inbox, onNewChat }: OpenChatProps) {
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
      return <Chat id={location.id} saved={loading.chat} inbox={inbox} />
  }
}
