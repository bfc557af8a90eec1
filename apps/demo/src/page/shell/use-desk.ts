import { useInbox } from 'adk-stream-protocol/react'
import { useCallback, useEffect, useRef } from 'react'

import { useChats } from '../chats/use-chats.ts'
import { useLanguage } from '../i18n/language.tsx'
import { api } from '../wire/wire.ts'
import { usePlace } from './use-place.ts'

export type Desk = ReturnType<typeof useDesk>

/** What the reader has before them: the chats, the one that is open, and what waits in all of them. */
export function useDesk(onLeave: () => void) {
  const { place, kept, startNew, open, remember } = usePlace(onLeave)
  const inbox = useInbox(api)
  const { refresh } = inbox
  const { store, list } = useChats()
  const { language } = useLanguage()
  const heardLanguage = useRef(language)
  useEffect(() => {
    // The server hears by it in which language to write its hints: what is said on a socket does not tell.
    if (heardLanguage.current !== language) refresh()
    heardLanguage.current = language
  }, [language, refresh])
  const { id } = place
  return {
    place,
    startNew,
    open,
    inbox,
    store,
    list,
    title: list.chats.find((chat) => chat.id === id)?.title,
    onBegun: useCallback(() => remember(id), [remember, id]),
    onSaid: useCallback((text: string) => void (kept && store.begin(id, text)), [kept, store, id]),
  }
}
