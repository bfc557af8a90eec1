import { type Inbox as InboxState, ApprovalInbox, useAdkLabels } from 'adk-stream-protocol/react'
import { Inbox as InboxIcon } from 'lucide-react'
import { useCallback } from 'react'

import type { Chats } from '../chats/chats-store.ts'
import { useLabels } from '../i18n/language.tsx'
import { approvalsUrl, openApprovals, chatUrl } from '../shell/location.ts'

interface InboxProps {
  readonly inbox: InboxState
  /** The chats of the person. */
  readonly chats: Chats['chats']
  readonly onOpenChat: (chatId: string) => void
}

const POPOVER_ID = 'inbox'

export function toggleInbox(): void {
  const popover = document.getElementById(POPOVER_ID)
  // The keys of an approval work only inside it. When the list is closed, the browser returns the focus.
  if (!popover?.togglePopover()) return
  // The heading stays in view.
  popover.querySelector<HTMLElement>('.adk-inbox')?.focus({ preventScroll: true })
  popover.scrollTop = 0
}

function closeInbox(): void {
  document.getElementById(POPOVER_ID)?.hidePopover()
}

/** A button with the number of pending approvals, which opens their list. */
export function Inbox({ inbox, chats, onOpenChat }: InboxProps) {
  const { inbox: labels } = useAdkLabels()
  const { approvalsPage } = useLabels().shell
  const { undecided, hasMore } = inbox
  const count = undecided.length
  const label = labels.label(count, hasMore)
  const renderChatLink = useCallback(
    (chatId: string) => (
      <ChatLink
        chatId={chatId}
        chats={chats}
        onOpenChat={(id) => {
          closeInbox()
          onOpenChat(id)
        }}
      />
    ),
    [chats, onOpenChat],
  )
  return (
    <>
      <button
        type="button"
        className="icon-button"
        aria-label={label}
        title={labels.title}
        popoverTarget={POPOVER_ID}
      >
        <InboxIcon aria-hidden="true" />
        {count > 0 && (
          <span className="badge" aria-hidden="true">
            {count}
            {hasMore && '+'}
          </span>
        )}
      </button>
      <div id={POPOVER_ID} className="popover inbox" popover="auto">
        <h2>{labels.title}</h2>
        <ApprovalInbox inbox={inbox} renderChatLink={renderChatLink} />
        <p>
          <a
            href={approvalsUrl()}
            onClick={(event) => {
              if (event.metaKey || event.ctrlKey || event.shiftKey) return
              event.preventDefault()
              closeInbox()
              openApprovals()
            }}
          >
            {approvalsPage.open}
          </a>
        </p>
      </div>
    </>
  )
}

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
