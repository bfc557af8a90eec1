import type { ChatSummary } from 'adk-stream-protocol/client'
import { PanelLeft, Search, SquarePen, X } from 'lucide-react'
import { type ReactNode, useId, useState } from 'react'

import { IconButton } from '../icon-button.tsx'
import icon from '../icon.svg'
import { useLabels } from '../i18n/language.tsx'
import { ChatItem } from './chat-item.tsx'
import {
  type Chats,
  type ChatsProblem,
  type ChatsStore,
  findChats,
  groupByDay,
} from './chats-store.ts'
import { Modal } from '../shell/dialogs.tsx'

interface ChatListProps {
  readonly list: Chats
  readonly store: ChatsStore
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
  const { list, store, currentId, onOpen, onNewChat, onHide, onDeleted } = props
  const labels = useLabels()
  const { chats: listLabels } = labels.shell
  const [query, setQuery] = useState('')
  const [deleting, setDeleting] = useState<ChatSummary>()
  const remove = (id: string) => {
    void store.remove(id)
    if (id === currentId) onDeleted()
  }
  return (
    <>
      <header className="panel-header">
        <p className="brand">
          <img src={icon} alt="" width="22" height="22" />
          {labels.title}
        </p>
        <IconButton icon={PanelLeft} label={listLabels.hide} onClick={onHide} />
      </header>
      <button type="button" className="outlined new-chat" onClick={onNewChat}>
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
              current={chat.id === currentId}
              onOpen={() => onOpen(chat.id)}
              onRename={(title) => void store.rename(chat.id, title)}
              onDelete={() => setDeleting(chat)}
            />
          )}
        </SearchResults>
      </div>
      <DeleteDialog chat={deleting} onDelete={remove} onClose={() => setDeleting(undefined)} />
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
