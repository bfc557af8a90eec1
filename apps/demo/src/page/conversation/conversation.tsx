import type { LoadedChat } from 'adk-stream-protocol/client'
import { ConnectionNotice, MessageList, ProblemCard } from 'adk-stream-protocol/react'
import type { UIMessage } from 'ai'
import { ArrowDown } from 'lucide-react'
import { memo, useCallback, useEffect, useRef, useState } from 'react'

import { Composer, type ComposerHandle, type Draft } from '../composer/composer.tsx'
import { useLabels } from '../i18n/language.tsx'
import { EditContext, renderActions } from './message-actions.tsx'
import type { Mode } from '../settings.ts'
import { useChatVoice, TalkButton, VoicePanel } from './voice-panel.tsx'
import { useConversation, useRefusedEdit } from './use-conversation.ts'
import { Welcome } from './welcome.tsx'

export interface ConversationProps {
  readonly id: string
  readonly mode: Mode
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
  const interruptWith = useCallback(
    (text: string) => {
      interrupt(text)
      goToEnd()
    },
    [interrupt, goToEnd],
  )
  const write = useCallback((text: string) => composerRef.current?.write(text), [])
  const edit = useRefusedEdit(chat, conversation.edit, write)
  const voice = useChatVoice(id, mode)
  const pending = countPending(messages)
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
              onChoose={(text) => sendDraft({ text, files: [] })}
              onAskAboutPicture={(text) => composerRef.current?.askAboutPicture(text)}
            />
          )}
          <EditContext value={busy ? undefined : edit}>
            <MessageList
              {...chat}
              onDecide={chat.decide}
              onCancelDecision={chat.cancelDecision}
              onRegenerate={conversation.regenerate}
              renderActions={renderActions}
              voice={voice}
            />
          </EditContext>
          {problem && problem.kind !== 'disconnected' && (
            <ProblemCard problem={problem} onRecover={conversation.recover} />
          )}
        </div>
      </main>
      <footer className="footer">
        <div className="column-width">
          <ConnectionNotice chat={chat} />
        </div>
        {!following && <LatestButton onClick={goToEnd} />}
        {voice && <VoicePanel voice={voice} chat={chat} />}
        <StableComposer
          handleRef={composerRef}
          status={status}
          draftKey={id}
          onSend={sendDraft}
          onStop={conversation.stop}
          onInterrupt={mode === 'live' ? interruptWith : undefined}
          voice={voice ? undefined : TALK}
        />
      </footer>
    </>
  )
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
      if (followingRef.current) scroller.scrollTop = scroller.scrollHeight
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
    if (scroller) scroller.scrollTop = scroller.scrollHeight
  }, [])
  return { scrollerRef, contentRef, following, goToEnd }
}
