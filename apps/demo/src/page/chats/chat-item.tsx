import type { ChatSummary } from 'adk-stream-protocol/client'
import { useEffect, useRef, useState, type KeyboardEvent, useId } from 'react'
import { Ellipsis, Pencil, Trash2 } from 'lucide-react'

import { chatUrl } from '../shell/location.ts'
import { useLabels } from '../i18n/language.tsx'
import { isComposing } from '../composer/composer.tsx'

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

interface RenameFormProps {
  readonly title: string
  readonly onRename: (title: string) => void
  /** `byKey` is true if the form was closed by keyboard. */
  readonly onClose: (byKey: boolean) => void
}

const MAX_LENGTH = 200

/** Renames a chat in place. Enter and blur save the name, Escape discards it. */
function RenameForm({ title, onRename, onClose }: RenameFormProps) {
  const { newName } = useLabels().shell.chats
  const inputRef = useRef<HTMLInputElement>(null)
  useEffect(() => inputRef.current?.select(), [])
  // Removing a focused field also fires a blur event.
  const closed = useRef(false)
  const close = (byKey: boolean) => {
    closed.current = true
    onClose(byKey)
  }
  const save = (byKey: boolean) => {
    if (closed.current) return
    const name = inputRef.current?.value.trim() ?? ''
    if (name !== '' && name !== title) onRename(name)
    close(byKey)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (isComposing(event)) return
    if (event.key === 'Enter') save(true)
    if (event.key !== 'Escape') return
    // Escape must not close the drawer around the field.
    event.preventDefault()
    event.stopPropagation()
    close(true)
  }
  return (
    <input
      ref={inputRef}
      className="rename"
      defaultValue={title}
      maxLength={MAX_LENGTH}
      aria-label={newName}
      onBlur={() => save(false)}
      onKeyDown={onKeyDown}
    />
  )
}

interface ChatMenuProps {
  readonly title: string
  readonly onRename: () => void
  readonly onDelete: () => void
}

/** The menu of a chat. */
function ChatMenu({ title, onRename, onDelete }: ChatMenuProps) {
  const { chats } = useLabels().shell
  const id = useId()
  const buttonRef = useRef<HTMLButtonElement>(null)
  const menuRef = useRef<HTMLDivElement>(null)
  const choose = (act: () => void) => () => {
    menuRef.current?.hidePopover()
    act()
  }
  return (
    <>
      <button
        ref={buttonRef}
        type="button"
        className="icon-button chat-options"
        aria-label={chats.options(title)}
        popoverTarget={id}
      >
        <Ellipsis aria-hidden="true" />
      </button>
      <div
        ref={menuRef}
        id={id}
        className="popover menu"
        popover="auto"
        onBeforeToggle={() => place(menuRef.current, buttonRef.current)}
      >
        <button type="button" className="menu-item" onClick={choose(onRename)}>
          <Pencil aria-hidden="true" />
          {chats.rename}
        </button>
        <button type="button" className="menu-item danger" onClick={choose(onDelete)}>
          <Trash2 aria-hidden="true" />
          {chats.delete}
        </button>
      </div>
    </>
  )
}

// The menu has no size before it is shown.
const MENU_HEIGHT_PX = 100
const MENU_WIDTH_PX = 180

/** Places the menu below its button, or above it at the end of the page, and inside the screen. */
function place(menu: HTMLElement | null, button: HTMLElement | null): void {
  if (!menu || !button) return
  const { top, bottom, left } = button.getBoundingClientRect()
  const below = bottom + MENU_HEIGHT_PX < window.innerHeight
  menu.style.left = `${Math.min(left, window.innerWidth - MENU_WIDTH_PX)}px`
  menu.style.top = `${below ? bottom + 4 : top - MENU_HEIGHT_PX}px`
}
