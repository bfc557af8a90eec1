import type { LoadedChat } from 'adk-stream-protocol/client'
import {
  ConnectionNotice,
  GrantList,
  MessageList,
  ProblemCard,
  useAdkChat,
  type Problem,
} from 'adk-stream-protocol/react'
import type { UIMessage } from 'ai'
import { ArrowDown } from 'lucide-react'
import { memo, useCallback, useEffect, useMemo, useRef, useState } from 'react'

import { Composer, type ComposerHandle, type Draft } from '../composer/composer.tsx'
import { useLabels } from '../i18n/language.tsx'
import { EditContext, LockedContext, renderActions, toMarkdown } from './message-actions.tsx'
import { storesChats } from '../settings.ts'
import { useChatVoice, useIsSpoken, TalkButton, VoicePanel } from './voice-panel.tsx'
import { Welcome } from './welcome.tsx'
import { usePlugin } from '../plugin/plugin-context.ts'
import { messageRequests } from '../developer/message-requests.ts'
import { isReplying } from '../inspector/inspection.ts'
import { api, live, useTransport } from '../wire/wire.ts'
import { storeTabChat } from './tab-chat.ts'

export interface ConversationProps {
  readonly id: string
  readonly mode: string
  readonly saved: LoadedChat
  /** Called when the chat has its first message. Pass a stable function. */
  readonly onStarted: () => void
  /** Called with the text of each message that is sent. Pass a stable function. */
  readonly onSent: (text: string) => void
}

/** The messages of a chat and the message input. */
export function Conversation(props: ConversationProps) {
  const { id, mode, onSent } = props
  const conversation = useConversation(props)
  const { chat, busy, send, interrupt } = conversation
  const { messages, status, problem } = chat
  const isEmpty = messages.length === 0 && !busy
  const { scrollerRef, contentRef, following, goToEnd } = useStickToEnd<
    HTMLElement,
    HTMLDivElement
  >(isEmpty)
  const composerRef = useRef<ComposerHandle>(null)
  const sendDraft = useCallback(
    (draft: Draft) => {
      send(draft)
      onSent(draft.text)
      goToEnd()
      composerRef.current?.focus()
    },
    [send, onSent, goToEnd],
  )
  useEffect(() => messageRequests.subscribe((text) => sendDraft({ text, files: [] })), [sendDraft])
  const interruptWith = useCallback(
    (text: string) => {
      interrupt(text)
      goToEnd()
    },
    [interrupt, goToEnd],
  )
  const write = useCallback((text: string) => composerRef.current?.write(text), [])
  const { edit: replace, regenerate } = conversation
  const resend = useCallback(
    (message: UIMessage, text: string) => {
      replace(message, text)
      composerRef.current?.focus()
    },
    [replace],
  )
  const edit = useRefusedEdit(chat, resend, write)
  const voice = useChatVoice(id, mode)
  const isSpoken = useIsSpoken(voice)
  const pending = countPending(messages)
  const lockedIds = listLocked(messages).join(' ')
  // A chunk does not render the actions of all messages.
  const locked = useMemo(() => new Set(lockedIds.split(' ')), [lockedIds])
  // A person who talks does not scroll to a new approval.
  useEffect(() => {
    if (pending > 0 && voice && voice.state.state !== 'off') goToEnd()
  }, [pending, voice, goToEnd])
  return (
    <>
      <main className="scroller" ref={scrollerRef}>
        <div className="column" ref={contentRef}>
          {isEmpty && (
            <Welcome
              chatId={id}
              onChoose={(text) => sendDraft({ text, files: [] })}
              onAskAboutPicture={(text) => composerRef.current?.askAboutPicture(text)}
            />
          )}
          <EditContext value={busy ? undefined : edit}>
            <LockedContext value={locked}>
              <MessageList
                chat={chat}
                onRegenerate={regenerate}
                renderActions={renderActions}
                voice={voice}
              />
            </LockedContext>
          </EditContext>
          {problem && problem.kind !== 'disconnected' && (
            <ProblemCard problem={problem} onRecover={conversation.recover} />
          )}
        </div>
      </main>
      <footer className="footer">
        <div className="column-width">
          <ConnectionNotice chat={chat} />
          {storesChats(mode) && <GrantList api={api} chatId={id} />}
        </div>
        {!following && <LatestButton onClick={goToEnd} />}
        {voice && <VoicePanel voice={voice} chat={chat} />}
        <StableComposer
          handleRef={composerRef}
          status={status}
          draftKey={chat.draftKey}
          onSend={sendDraft}
          // The voice controls have the button that stops a spoken reply.
          onStop={isSpoken ? undefined : conversation.stop}
          onInterrupt={mode === 'live' ? interruptWith : undefined}
          voice={voice ? undefined : TALK}
        />
      </footer>
    </>
  )
}

/** Returns the ids of the messages before the newest one with an approved call. */
function listLocked(messages: readonly UIMessage[]): string[] {
  const acted = messages.findLastIndex(({ parts }) =>
    parts.some((part) => 'approval' in part && part.approval?.approved === true),
  )
  return messages.slice(0, Math.max(acted, 0)).map(({ id }) => id)
}

function countPending(messages: readonly UIMessage[]): number {
  return messages
    .flatMap(({ parts }) => parts)
    .filter((part) => 'state' in part && part.state === 'approval-requested').length
}

const TALK = <TalkButton />

/** Memoised: a chunk does not render the composer. */
const StableComposer = memo(Composer)

function LatestButton({ onClick }: { readonly onClick: () => void }) {
  const labels = useLabels()
  return (
    <button type="button" className="latest" aria-label={labels.latest} onClick={onClick}>
      <ArrowDown aria-hidden="true" />
    </button>
  )
}

const NEAR_PX = 40

/** The pending cards at the end of the conversation. */
const LAST_CARDS = '.adk-message:last-of-type > .adk-approval[data-state="approval-requested"]'

/** Returns how far to scroll: to the end, but not past the headline of the first card that waits there. */
function findEnd(scroller: HTMLElement, content: HTMLElement): number {
  const end = scroller.scrollHeight - scroller.clientHeight
  const card = content.querySelector<HTMLElement>(LAST_CARDS)
  if (!card || !isLastContent(card)) return end
  const top = card.getBoundingClientRect().top - scroller.getBoundingClientRect().top
  return Math.min(end, scroller.scrollTop + top - CARD_MARGIN_PX)
}

/** Whether nothing but other cards and the footer of the message follows. */
function isLastContent(card: Element): boolean {
  const next = card.nextElementSibling
  return next === null || (next.matches('.adk-tool, footer') && isLastContent(next))
}

/** Between the top of the view and a card, in px. */
const CARD_MARGIN_PX = 8

/**
 * Scrolls to the end of an element when content is added, until the person scrolls up. Continues when they return to the end. Does
 * not scroll if `still` is true.
 */
function useStickToEnd<Scroller extends HTMLElement, Content extends HTMLElement>(still: boolean) {
  const scrollerRef = useRef<Scroller>(null)
  const contentRef = useRef<Content>(null)
  const followingRef = useRef(true)
  const [following, setFollowing] = useState(true)

  useEffect(() => {
    const scroller = scrollerRef.current
    const content = contentRef.current
    if (still || !scroller || !content) return
    let lastTop = scroller.scrollTop
    let lastHeight = scroller.clientHeight
    const follow = (value: boolean) => {
      followingRef.current = value
      setFollowing(value)
    }
    const watch = () => {
      const distance = scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop
      // Only scrolling up is an action of the person. Growing content also increases the distance, and a scroller that grows
      // or shrinks moves its content.
      const isResized = scroller.clientHeight !== lastHeight
      if (distance < NEAR_PX) follow(true)
      else if (scroller.scrollTop < lastTop && !isResized) follow(false)
      lastTop = scroller.scrollTop
      lastHeight = scroller.clientHeight
    }
    const grown = new ResizeObserver(() => {
      if (followingRef.current) scroller.scrollTop = findEnd(scroller, content)
    })
    scroller.addEventListener('scroll', watch, { passive: true })
    grown.observe(content)
    grown.observe(scroller)
    return () => {
      scroller.removeEventListener('scroll', watch)
      grown.disconnect()
    }
  }, [still])

  const goToEnd = useCallback(() => {
    followingRef.current = true
    setFollowing(true)
    const scroller = scrollerRef.current
    const content = contentRef.current
    if (scroller && content) scroller.scrollTop = findEnd(scroller, content)
  }, [])
  return { scrollerRef, contentRef, following, goToEnd }
}

type ConversationOptions = Pick<ConversationProps, 'id' | 'mode' | 'saved' | 'onStarted'>

/** The chat over the transport of its mode, with stable functions for the page. */
function useConversation({ id, mode, saved, onStarted }: ConversationOptions) {
  const isStored = storesChats(mode)
  const chat = useAdkChat({
    id,
    transport: useTransport(mode),
    messages: saved.messages,
    resume: saved.running,
    tools: usePlugin().browserTools,
    ...(isStored && { api }),
  })
  const { messages, status, attached, sendMessage, stop, regenerate, recover } = chat
  const busy = status === 'submitted' || status === 'streaming'
  const isStarted = messages.length > 0
  useEffect(() => {
    if (isStarted) onStarted()
  }, [isStarted, onStarted])
  useEffect(() => isReplying.set(busy), [busy])
  useEffect(() => {
    if (!isStored && !busy && messages.length > 0) storeTabChat(mode, { id, messages })
  }, [id, mode, isStored, busy, messages])
  const regenerateLast = useCallback(() => void regenerate(), [regenerate])
  // The server starts a reply to speech by itself, so the status of the chat does not show it.
  const isSpeechReply = attached?.isWriting(messages.at(-1)?.id ?? '') ?? false
  return {
    chat,
    busy,
    // The chat reports an error as its problem.
    send: useCallback(
      ({ text, files }: Draft) => void sendMessage(text === '' ? { files } : { text, files }),
      [sendMessage],
    ),
    /** Sends text during a reply over the socket, and interrupts the reply. */
    interrupt: useCallback((text: string) => live.sendText(id, text), [id]),
    /** Replaces a message and everything after it. */
    edit: useCallback(
      (message: UIMessage, text: string) => {
        const files = message.parts.filter((part) => part.type === 'file')
        void sendMessage({ text, files, messageId: message.id })
      },
      [sendMessage],
    ),
    stop: useCallback(() => void stop(), [stop]),
    regenerate: isSpeechReply ? undefined : regenerateLast,
    // While the server is unreachable, the problem and its button stay on the page.
    recover: useCallback(() => void recover().catch(() => undefined), [recover]),
  }
}

interface ShownChat {
  readonly messages: readonly UIMessage[]
  readonly problem: Problem | undefined
}

type Edit = (message: UIMessage, text: string) => void

/** Restores the text of an edit that the server refused, after the message has its old text again. */
function useRefusedEdit(
  { messages, problem }: ShownChat,
  edit: Edit,
  restore: (text: string) => void,
): Edit {
  const sent = useRef<string | undefined>(undefined)
  const isRefused = problem?.kind === 'refused'
  useEffect(() => {
    const text = sent.current
    if (!isRefused || text === undefined) return
    if (messages.some((message) => message.role === 'user' && toMarkdown(message) === text)) return
    sent.current = undefined
    restore(text)
  }, [isRefused, messages, restore])
  return useCallback(
    (message, text) => {
      sent.current = text.trim()
      edit(message, text)
    },
    [edit],
  )
}
