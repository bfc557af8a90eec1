import { ArrowDown } from 'lucide-react'
import { useMemo, useRef } from 'react'

import type { SavedChat } from '../chat/chat-api.ts'
import { hasContent, type Message } from '../chat/message.ts'
import { Composer, type ComposerHandle } from '../composer/composer.tsx'
import type { Draft } from '../composer/use-draft.ts'
import { ApprovalsContext } from '../hooks/approvals-context.ts'
import { useDemoChat } from '../hooks/use-demo-chat.ts'
import type { InboxState } from '../hooks/use-inbox.ts'
import { useStickToEnd } from '../hooks/use-stick-to-end.ts'
import { useTexts } from '../i18n/language.tsx'
import { MessageView } from './message-view.tsx'
import { ProblemCard } from './problem-card.tsx'
import { Welcome } from './welcome.tsx'

interface ChatProps {
  readonly id: string
  readonly saved: SavedChat
  readonly inbox: InboxState
  /** Something was said in it. */
  readonly onSaid: (text: string) => void
}

export function Chat({ id, saved, inbox, onSaid }: ChatProps) {
  const texts = useTexts()
  const chat = useDemoChat(id, saved, inbox.refresh)
  const { messages, busy, problem, send, decide, refusals } = chat
  const desk = useMemo(
    () => ({ decide, refusals, pending: inbox.pending }),
    [decide, refusals, inbox.pending],
  )
  const isEmpty = messages.length === 0 && !busy
  const { scrollerRef, contentRef, following, goToEnd } = useStickToEnd<
    HTMLElement,
    HTMLDivElement
  >(isEmpty)
  const composerRef = useRef<ComposerHandle>(null)
  const say = (draft: Draft) => {
    send(draft)
    onSaid(draft.text)
    goToEnd()
    composerRef.current?.focus()
  }
  const last = messages.at(-1)
  return (
    <>
      <main className="scroller" ref={scrollerRef}>
        <div className="column" ref={contentRef}>
          {isEmpty && (
            <Welcome
              onChoose={(text) => say({ text, files: [] })}
              onAskAboutPicture={(text) => composerRef.current?.askAboutPicture(text)}
            />
          )}
          <div role="log" aria-label={texts.conversation} aria-busy={busy} className="log">
            <ApprovalsContext value={desk}>
              {messages.filter(hasContent).map((message) => (
                <MessageView
                  key={message.id}
                  message={message}
                  streaming={busy && message === last}
                  onEdit={message.role === 'user' && !busy ? chat.edit : undefined}
                  onRegenerate={
                    message === last && chat.canRegenerate ? chat.regenerate : undefined
                  }
                />
              ))}
            </ApprovalsContext>
            {busy && !isAnswered(last) && <Thinking />}
          </div>
          {problem && <ProblemCard problem={problem} onRecover={chat.recover} />}
        </div>
      </main>
      <footer className="footer">
        {!following && <LatestButton onClick={goToEnd} />}
        <Composer handleRef={composerRef} busy={busy} onSend={say} onStop={chat.stop} />
      </footer>
    </>
  )
}

function isAnswered(last: Message | undefined): boolean {
  return last?.role === 'assistant' && hasContent(last)
}

function LatestButton({ onClick }: { readonly onClick: () => void }) {
  const texts = useTexts()
  return (
    <button type="button" className="latest" aria-label={texts.latest} onClick={onClick}>
      <ArrowDown aria-hidden="true" />
    </button>
  )
}

function Thinking() {
  const texts = useTexts()
  return (
    <p className="thinking">
      <span className="pulse" aria-hidden="true" />
      {texts.thinking}
    </p>
  )
}
