import { useInbox } from 'adk-stream-protocol/react'
import { useCallback, useEffect, useRef, useState } from 'react'

import { focusComposer } from '../composer/composer.tsx'
import { useLanguage } from '../i18n/language.tsx'
import { useNotifications, storesChats, useMode } from '../settings.ts'
import { api } from '../wire/wire.ts'
import { deleteTabChat, readTabChat } from '../conversation/tab-chat.ts'
import { type ChatLocation, useChatLocation } from './location.ts'
import { ChatsStore } from '../chats/chats-store.ts'
import { useValue } from '../observable-value.ts'

export type Workspace = ReturnType<typeof useWorkspace>

/** The list of chats, the open chat, and the pending approvals of all chats. */
export function useWorkspace(onLeave: () => void) {
  const { location, isStored, startNew, open, remember } = useCurrentChat(onLeave)
  const [notifications] = useNotifications()
  const inbox = useInbox(api, { whileHidden: notifications === 'on' })
  const { refresh } = inbox
  const { store, list } = useChats()
  const { language } = useLanguage()
  const sentLanguage = useRef(language)
  useEffect(() => {
    // The request sends the language in which the server writes its hints. Frames of a socket do not contain it.
    if (sentLanguage.current !== language) refresh()
    sentLanguage.current = language
  }, [language, refresh])
  const { id } = location
  return {
    location,
    startNew: useCallback(() => {
      startNew()
      // An empty chat stays open and does not take the focus by itself.
      focusComposer()
    }, [startNew]),
    open,
    inbox,
    store,
    list,
    title: list.chats.find((chat) => chat.id === id)?.title,
    onStarted: useCallback(() => remember(id), [remember, id]),
    onSent: useCallback(
      (text: string) => void (isStored && store.addStarted(id, text)),
      [isStored, store, id],
    ),
  }
}

/**
 * The open chat of the chosen mode. Both modes of the agent share the chat in the URL. A mode without the agent has its own chat, which
 * ends with the tab.
 */
function useCurrentChat(onLeave: () => void) {
  const [mode, chooseMode] = useMode()
  const { location, startNew: startChat, open: openChat } = useChatLocation()
  const isStored = storesChats(mode)
  const [tabChat, setTabChat] = useState(() => findTabChat(mode))
  if (!isStored && tabChat.mode !== mode) setTabChat(findTabChat(mode))
  const startNew = useCallback(() => {
    onLeave()
    if (isStored) return startChat()
    deleteTabChat(mode)
    setTabChat(findTabChat(mode))
  }, [isStored, mode, startChat, onLeave])
  const open = useCallback(
    (id: string) => {
      onLeave()
      // The list contains chats of the agent only.
      if (!isStored) chooseMode('sse')
      openChat(id)
    },
    [isStored, chooseMode, openChat, onLeave],
  )
  /** Puts the chat into the URL after its first message. */
  const remember = useCallback(
    (id: string) => void (isStored && location.isNew && openChat(id)),
    [isStored, location.isNew, openChat],
  )
  return { location: isStored ? location : tabChat.location, isStored, startNew, open, remember }
}

/** Returns the stored chat of a mode without the agent, or a new one if none was stored. */
function findTabChat(mode: string): { readonly mode: string; readonly location: ChatLocation } {
  return { mode, location: { id: readTabChat(mode).id, isNew: true } }
}

/** How long changes are collected before the list is loaded again, in ms. */
const MERGE_MS = 50

/** Returns the chats of the person. Loads them when the feed opens, so that no change is missed, and when it reports a change. */
function useChats() {
  const [store] = useState(() => new ChatsStore(api))
  const list = useValue(store)
  useEffect(() => follow(store), [store])
  return { store, list }
}

/** Loads the list again when the feed reports a change. Returns a function that stops it. */
function follow(store: ChatsStore): () => void {
  let isLoaded = false
  let pendingRefresh: ReturnType<typeof setTimeout> | undefined
  const refresh = (): void => {
    pendingRefresh = undefined
    void store.refresh()
  }
  const unwatch = api.watch(({ type }) => {
    // If an approval changes, the feed also reports its chat.
    if (type === 'approval') return
    // Without a feed, the list is loaded once, and again when the feed opens.
    if (type === 'lost' && isLoaded) return
    pendingRefresh ??= setTimeout(refresh, isLoaded ? MERGE_MS : 0)
    isLoaded = true
  })
  return () => {
    unwatch()
    clearTimeout(pendingRefresh)
  }
}
