import type { ChatSummary } from 'adk-stream-protocol/client'
import { useEffect, useRef, useState } from 'react'

import { chatUrl } from '../shell/use-chat-location.ts'
import { useLabels } from '../i18n/language.tsx'
import { ChatMenu } from './chat-menu.tsx'
import { RenameForm } from './rename-form.tsx'

interface ChatItemProps {
  readonly chat: ChatSummary
  readonly current: boolean
  readonly onOpen: () => void
  readonly onRename: (title: string) => void
  readonly onDelete: () => void
}

/** A chat in the list: its title, state and menu. */
export function ChatItem({ chat, current, onOpen, onRename, onDelete }: ChatItemProps) {
  const { untitled } = useLabels().shell.chats
  const [renaming, setRenaming] = useState(false)
  const linkRef = useRef<HTMLAnchorElement>(null)
  const returning = useRef(false)
  useEffect(() => {
    if (!renaming && returning.current) linkRef.current?.focus()
    returning.current = false
  }, [renaming])
  const title = chat.title || untitled
  if (renaming) {
    return (
      <li className="chat-item">
        <RenameForm
          title={title}
          onRename={onRename}
          onClose={(byKey) => {
            returning.current = byKey
            setRenaming(false)
          }}
        />
      </li>
    )
  }
  return (
    <li className="chat-item">
      <a
        ref={linkRef}
        href={chatUrl(chat.id)}
        className="chat-link"
        title={title}
        aria-current={current ? 'page' : undefined}
        onClick={(event) => {
          // Lets the browser open a new tab or window.
          if (event.metaKey || event.ctrlKey || event.shiftKey) return
          event.preventDefault()
          onOpen()
        }}
      >
        <span className="chat-title">{title}</span>
        <ChatMarks chat={chat} />
      </a>
      <ChatMenu title={title} onRename={() => setRenaming(true)} onDelete={onDelete} />
    </li>
  )
}

function ChatMarks({ chat: { running, pending } }: Pick<ChatItemProps, 'chat'>) {
  const { chats } = useLabels().shell
  return (
    <>
      {pending > 0 && (
        <span className="badge waiting" title={chats.pending(pending)}>
          <span aria-hidden="true">{pending}</span>
          <span className="visually-hidden">{chats.pending(pending)}</span>
        </span>
      )}
      {running && (
        <span className="pulse" title={chats.running}>
          <span className="visually-hidden">{chats.running}</span>
        </span>
      )}
    </>
  )
}
