import { Inbox as InboxIcon } from 'lucide-react'
import { useState } from 'react'

import type { Decision } from '../chat/approval.ts'
import { type Pending, postDecision } from '../chat/approvals-api.ts'
import { describeCall } from '../chat/describe-call.ts'
import type { TurnError } from '../chat/message.ts'
import { chatAddress } from '../hooks/use-chat-location.ts'
import { useTexts } from '../i18n/language.tsx'
import { Countdown } from './countdown.tsx'
import { SeverityMark } from './severity-mark.tsx'

interface InboxProps {
  readonly pending: readonly Pending[]
  readonly onChange: () => void
  readonly onOpenChat: (chatId: string) => void
}

const POPOVER_ID = 'inbox'

export function toggleInbox(): void {
  document.getElementById(POPOVER_ID)?.togglePopover()
}

/** What waits for a decision in all chats, behind a button that says how much it is. */
export function Inbox({ pending, onChange, onOpenChat }: InboxProps) {
  const texts = useTexts()
  const { inbox } = texts.approval
  return (
    <>
      <button
        type="button"
        className="icon-button"
        aria-label={inbox.label(pending.length)}
        popoverTarget={POPOVER_ID}
      >
        <InboxIcon aria-hidden="true" />
        {pending.length > 0 && (
          <span className="badge" aria-hidden="true">
            {pending.length}
          </span>
        )}
      </button>
      <section id={POPOVER_ID} className="popover inbox" popover="auto" aria-label={inbox.title}>
        <h2>{inbox.title}</h2>
        {pending.length === 0 && <p className="inbox-empty">{inbox.empty}</p>}
        <ul>
          {pending.map((approval) => (
            <InboxItem
              key={approval.id}
              approval={approval}
              onChange={onChange}
              onOpenChat={onOpenChat}
            />
          ))}
        </ul>
      </section>
    </>
  )
}

interface InboxItemProps extends Pick<InboxProps, 'onChange' | 'onOpenChat'> {
  readonly approval: Pending
}

function InboxItem({ approval, onChange, onOpenChat }: InboxItemProps) {
  const texts = useTexts()
  const [refusal, setRefusal] = useState<TurnError>()
  const [over, setOver] = useState(false)
  const { id, toolName, args, title, hint, severity, deadline, approvals, chatId } = approval
  const deed = describeCall(toolName, args, texts)
  const decide = async (decision: Decision) => {
    setRefusal(await postDecision(id, decision))
    onChange()
  }
  return (
    <li className="inbox-item" aria-label={deed}>
      <div className="tool-header">
        <span className="approval-title">{title ?? toolName}</span>
        <SeverityMark severity={severity} />
        <Countdown deadline={deadline} onOver={() => setOver(true)} />
      </div>
      <p className="approval-deed">{deed}</p>
      {hint && <p className="approval-hint">{hint}</p>}
      {approvals.needed > 1 && (
        <p className="approval-votes">{texts.approval.votes(approvals.given, approvals.needed)}</p>
      )}
      {refusal && (
        <p className="tool-failure" role="alert">
          {texts.approval.refusals[refusal.code] ?? refusal.message}
        </p>
      )}
      <div className="actions">
        <button
          type="button"
          className="primary"
          disabled={over}
          onClick={() => void decide({ approved: true })}
        >
          {texts.approval.approve}
        </button>
        <button
          type="button"
          className="outlined"
          disabled={over}
          onClick={() => void decide({ approved: false })}
        >
          {texts.approval.denyNow}
        </button>
        {chatId !== undefined && <ChatLink chatId={chatId} onOpenChat={onOpenChat} />}
      </div>
    </li>
  )
}

interface ChatLinkProps extends Pick<InboxProps, 'onOpenChat'> {
  readonly chatId: string
}

function ChatLink({ chatId, onOpenChat }: ChatLinkProps) {
  const texts = useTexts()
  return (
    <a
      href={chatAddress(chatId)}
      onClick={(event) => {
        // In another tab or window, as the reader wishes.
        if (event.metaKey || event.ctrlKey || event.shiftKey) return
        event.preventDefault()
        document.getElementById(POPOVER_ID)?.hidePopover()
        onOpenChat(chatId)
      }}
    >
      {texts.approval.inbox.open}
    </a>
  )
}
