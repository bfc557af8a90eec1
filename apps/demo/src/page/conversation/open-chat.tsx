import { useLabels } from '../i18n/language.tsx'
import { useMode } from '../settings/mode.ts'
import type { ChatLocation } from '../shell/use-chat-location.ts'
import { Conversation, type ConversationProps } from './conversation.tsx'
import { Notice } from './notice.tsx'
import { useSavedChat } from './use-saved-chat.ts'

interface OpenChatProps extends Omit<ConversationProps, 'id' | 'mode' | 'saved'> {
  readonly location: ChatLocation
  /** Whether something else is shown instead. The chat continues. */
  readonly hidden: boolean
  readonly onNewChat: () => void
}

/** Loads a chat and shows it. */
export function OpenChat({ location, hidden, onNewChat, ...rest }: OpenChatProps) {
  const labels = useLabels()
  const [mode] = useMode()
  const loading = useSavedChat(location, mode)
  switch (loading.state) {
    case 'loading':
      return (
        <main className="pause" aria-busy="true">
          <p role="status">{labels.loading}</p>
        </main>
      )
    case 'missing':
      return (
        <main className="pause">
          <Notice
            title={labels.missingTitle}
            text={labels.missingText}
            action={labels.newChat}
            onAction={onNewChat}
          />
        </main>
      )
    case 'failed':
      return (
        <main className="pause">
          <Notice
            title={labels.unreadableTitle}
            text={labels.unreadableText}
            action={labels.reload}
            onAction={() => window.location.reload()}
          />
        </main>
      )
    case 'ready':
      return (
        // Until the chat is loaded for the new mode, a message would be sent in the old one.
        <div className="conversation" hidden={hidden} inert={loading.mode !== mode}>
          <Conversation id={location.id} mode={loading.mode} saved={loading.chat} {...rest} />
        </div>
      )
  }
}
