import icon from '../icon.svg'
import type { ChatSummary } from 'adk-stream-protocol/client'
import type { Inbox } from 'adk-stream-protocol/react'
import { PanelLeft, Search, SquarePen, X, Ellipsis, Pencil, Trash2 } from 'lucide-react'
import { type ReactNode, useId, useState, useEffect, useRef, type KeyboardEvent } from 'react'

import { IconButton } from '../icon-button.tsx'
import { useLabels } from '../i18n/language.tsx'
import {
  type Chats,
  type ChatsProblem,
  type ChatsStore,
  findChats,
  groupByDay,
} from './chats-store.ts'
import { Modal } from '../shell/dialogs.tsx'
import { useApplicationName } from '../shell/application-name.ts'
import { chatUrl } from '../shell/location.ts'
import { isComposing } from '../composer/composer.tsx'

interface ChatListProps {
  readonly list: Chats
  readonly store: ChatsStore
  /** The approvals that wait for the person. */
  readonly undecided: Inbox['undecided']
  /** The id of the open chat. */
  readonly currentId: string
  readonly onOpen: (id: string) => void
  readonly onNewChat: () => void
  readonly onHide: () => void
  /** Called when the open chat was deleted. */
  readonly onDeleted: () => void
}

/** The number of chats from which the search field is shown. */
const SEARCH_FROM = 6

/** The person's chats, newest first. */
export function ChatList(props: ChatListProps) {
  const { list, store, undecided, currentId, onOpen, onNewChat, onHide, onDeleted } = props
  const labels = useLabels()
  const { chats: listLabels } = labels.shell
  const [query, setQuery] = useState('')
  const [deleting, setDeleting] = useState<ChatSummary>()
  const remove = (id: string) => {
    void store.remove(id)
    if (id === currentId) onDeleted()
  }
  const newChatRef = useRef<HTMLButtonElement>(null)
  const closeDialog = () => {
    setDeleting(undefined)
    // The dialog returns the focus to the chat that was deleted.
    if (document.activeElement === document.body) newChatRef.current?.focus()
  }
  return (
    <>
      <header className="panel-header">
        <p className="brand">
          <img src={icon} alt="" width="22" height="22" />
          {useApplicationName()}
        </p>
        <IconButton icon={PanelLeft} label={listLabels.hide} onClick={onHide} />
      </header>
      <button type="button" className="outlined new-chat" ref={newChatRef} onClick={onNewChat}>
        <SquarePen aria-hidden="true" />
        {labels.newChat}
      </button>
      {list.chats.length >= SEARCH_FROM && <ChatSearch value={query} onChange={setQuery} />}
      <div className="panel-body">
        <SearchResults list={list} query={query}>
          {(chat) => (
            <ChatItem
              key={chat.id}
              chat={chat}
              pending={undecided.filter(({ chatId }) => chatId === chat.id).length}
              current={chat.id === currentId}
              onOpen={() => onOpen(chat.id)}
              onRename={(title) => void store.rename(chat.id, title)}
              onDelete={() => setDeleting(chat)}
            />
          )}
        </SearchResults>
      </div>
      <DeleteDialog chat={deleting} onDelete={remove} onClose={closeDialog} />
      {/* If the list is only out of date, the notice about the connection is enough. */}
      {list.problem && !(list.problem === 'list' && list.chats.length > 0) && (
        <ListProblem problem={list.problem} onDismiss={store.dismiss} />
      )}
    </>
  )
}

interface ListProblemProps {
  readonly problem: ChatsProblem
  readonly onDismiss: () => void
}

/** Shows which request failed. */
function ListProblem({ problem, onDismiss }: ListProblemProps) {
  const { chats, close } = useLabels().shell
  return (
    <div className="panel-problem" role="alert">
      <p>{chats.problems[problem]}</p>
      <IconButton icon={X} label={close} className="action" onClick={onDismiss} />
    </div>
  )
}

interface ChatSearchProps {
  readonly value: string
  readonly onChange: (value: string) => void
}

function ChatSearch({ value, onChange }: ChatSearchProps) {
  const { search } = useLabels().shell.chats
  return (
    <div className="chat-search">
      <Search aria-hidden="true" />
      <input
        type="search"
        value={value}
        aria-label={search}
        placeholder={search}
        onChange={(event) => onChange(event.target.value)}
      />
    </div>
  )
}

interface SearchResultsProps {
  readonly list: Chats
  readonly query: string
  readonly children: (chat: ChatSummary) => ReactNode
}

/** The chats whose title contains the query, grouped by day. */
function SearchResults({ list, query, children }: SearchResultsProps) {
  const { chats: listLabels } = useLabels().shell
  const id = useId()
  if (list.state === 'loading') return null
  const found = findChats(list.chats, query)
  if (found.length === 0) {
    return <p className="fine">{query.trim() === '' ? listLabels.none : listLabels.noneFound}</p>
  }
  return groupByDay(found).map(({ day, chats }) => (
    <section key={day} aria-labelledby={`${id}-${day}`}>
      <h2 id={`${id}-${day}`} className="group-title">
        {listLabels[day]}
      </h2>
      <ul className="chats">{chats.map(children)}</ul>
    </section>
  ))
}

interface DeleteDialogProps {
  readonly chat: ChatSummary | undefined
  readonly onDelete: (id: string) => void
  readonly onClose: () => void
}

/** Asks for confirmation, because the server deletes the chat too. */
function DeleteDialog({ chat, onDelete, onClose }: DeleteDialogProps) {
  const { shell } = useLabels()
  const { chats } = shell
  return (
    <Modal open={chat !== undefined} label={chats.deleteTitle} className="dialog" onClose={onClose}>
      {chat && (
        <>
          <h2>{chats.deleteTitle}</h2>
          <p>{chats.deleteText(chat.title || chats.untitled)}</p>
          <div className="actions dialog-actions">
            <button type="button" className="outlined" onClick={onClose}>
              {shell.cancel}
            </button>
            <button
              type="button"
              className="primary danger"
              onClick={() => {
                onDelete(chat.id)
                onClose()
              }}
            >
              {chats.delete}
            </button>
          </div>
        </>
      )}
    </Modal>
  )
}

interface ChatItemProps {
  readonly chat: ChatSummary
  /** The number of its approvals that wait for the person. */
  readonly pending: number
  readonly current: boolean
  readonly onOpen: () => void
  readonly onRename: (title: string) => void
  readonly onDelete: () => void
}

/** A chat in the list: its title, state and menu. */
function ChatItem({ chat, pending, current, onOpen, onRename, onDelete }: ChatItemProps) {
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
        <ChatMarks running={chat.running} pending={pending} />
      </a>
      <ChatMenu title={title} onRename={() => setRenaming(true)} onDelete={onDelete} />
    </li>
  )
}

interface ChatMarksProps extends Pick<ChatItemProps, 'pending'> {
  readonly running: boolean
}

function ChatMarks({ running, pending }: ChatMarksProps) {
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
