import type { LoadedChat } from 'adk-stream-protocol/client'
import { useEffect, useLayoutEffect, useRef, useState } from 'react'

import { useLabels } from '../i18n/language.tsx'
import { useMode, storesChats } from '../settings.ts'
import type { ChatLocation } from '../shell/location.ts'
import { focusComposer } from '../composer/composer.tsx'
import { Conversation, type ConversationProps } from './conversation.tsx'
import { api } from '../wire/wire.ts'
import { readTabChat } from './tab-chat.ts'

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
  const conversationRef = useKeptFocus(loading.state === 'ready' && loading.mode !== mode)
  switch (loading.state) {
    case 'loading':
      return (
        <main className="pause" aria-busy="true">
          <p role="status">{labels.loading}</p>
        </main>
      )
    case 'missing':
      return (
        <Notice
          title={labels.missingTitle}
          text={labels.missingText}
          action={labels.newChat}
          onAction={onNewChat}
        />
      )
    case 'failed':
      return (
        <Notice
          title={labels.unreadableTitle}
          text={labels.unreadableText}
          action={labels.reload}
          onAction={() => window.location.reload()}
        />
      )
    case 'ready':
      return (
        // Until the chat is loaded for the new mode, a message would be sent in the old one.
        <div
          className="conversation"
          ref={conversationRef}
          hidden={hidden}
          inert={loading.mode !== mode}
        >
          <Conversation id={location.id} mode={loading.mode} saved={loading.chat} {...rest} />
        </div>
      )
  }
}

/** Returns the focus that a conversation has lost while it was inert: to the same element, or else to the voice or the input. */
function useKeptFocus(isInert: boolean) {
  const ref = useRef<HTMLDivElement>(null)
  const leftRef = useRef<HTMLElement>(undefined)
  useLayoutEffect(() => {
    const { activeElement } = document
    // The browser takes the focus from an inert element later.
    if (isInert && activeElement instanceof HTMLElement && ref.current?.contains(activeElement))
      leftRef.current = activeElement
    if (isInert) return
    const left = leftRef.current
    leftRef.current = undefined
    if (!left || activeElement !== document.body) return
    const voice = ref.current?.querySelector<HTMLElement>('.adk-stage-main')
    if (left.isConnected) left.focus()
    else if (voice) voice.focus()
    else focusComposer()
  }, [isInert])
  return ref
}

interface NoticeProps {
  readonly title: string
  readonly text: string
  readonly action: string
  readonly onAction: () => void
}

/** Shows a problem instead of the chat, with a button for the action that helps. */
function Notice({ title, text, action, onAction }: NoticeProps) {
  return (
    <main className="pause">
      <div className="notice" role="alert">
        <div>
          <p className="notice-title">{title}</p>
          <p className="notice-text">{text}</p>
        </div>
        <button type="button" className="outlined" onClick={onAction}>
          {action}
        </button>
      </div>
    </main>
  )
}

/** A stored chat, and the mode for which it was loaded. */
type Loading =
  | { readonly state: 'loading'; readonly mode?: never }
  | { readonly state: 'ready'; readonly chat: LoadedChat; readonly mode: string }
  | { readonly state: 'missing' | 'failed'; readonly mode: string }

const EMPTY: LoadedChat = { messages: [], running: false, position: '0.' }

/**
 * Loads the messages of the chat in the URL. A new chat is ready at once. If the mode changes, the chat is loaded again, because a
 * reply may be running. Until then, the chat is shown as it was in the previous mode.
 */
function useSavedChat({ id, isNew }: ChatLocation, mode: string): Loading {
  const [wasNew] = useState(isNew)
  const [loading, setLoading] = useState(() => initialState(isNew, mode))
  const isLoaded = loading.mode === mode
  useEffect(() => {
    if (isLoaded) return
    let isCancelled = false
    const read = async (): Promise<void> => {
      const next = await readChat(id, { mode, wasNew })
      if (!isCancelled) setLoading(next)
    }
    void read()
    return () => {
      isCancelled = true
    }
  }, [id, mode, isLoaded, wasNew])
  return loading
}

interface LoadOptions {
  readonly mode: string
  /** Whether the chat may still be empty. */
  readonly wasNew: boolean
}

async function readChat(id: string, { mode, wasNew }: LoadOptions): Promise<Loading> {
  try {
    const chat = await api.loadChat(id)
    // The server does not reveal whether the chat exists for another person.
    const exists = wasNew || chat.running || chat.messages.length > 0
    return exists ? { state: 'ready', chat, mode } : { state: 'missing', mode }
  } catch {
    // The page shows the failure with a button to try again.
    return { state: 'failed', mode }
  }
}

function initialState(isNew: boolean, mode: string): Loading {
  if (!storesChats(mode)) return { state: 'ready', chat: { ...EMPTY, ...readTabChat(mode) }, mode }
  return isNew ? { state: 'ready', chat: EMPTY, mode } : { state: 'loading' }
}
