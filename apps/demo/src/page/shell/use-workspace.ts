import { useInbox } from 'adk-stream-protocol/react'
import { useCallback, useEffect, useRef } from 'react'

import { useChats } from '../chats/use-chats.ts'
import { focusComposer } from '../composer/composer.tsx'
import { useLanguage } from '../i18n/language.tsx'
import { useNotifications } from '../settings/notifications.ts'
import { api } from '../wire/wire.ts'
import { useCurrentChat } from './use-current-chat.ts'

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
