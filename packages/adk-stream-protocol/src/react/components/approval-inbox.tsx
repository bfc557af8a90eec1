import { type ReactNode, useRef, useState } from 'react'

import type { PendingApproval } from '../../protocol/server-views.ts'
import { useAdkTexts, useDeed } from '../provider.tsx'
import type { Decision } from '../reading/approval.ts'
import { toLiteral } from '../reading/literal-text.ts'
import type { ToldError } from '../reading/problem.ts'
import { ApprovalForm } from './approval-form.tsx'
import { Countdown } from './countdown.tsx'
import { LiteralText } from './literal-text.tsx'
import { Refused } from './refused.tsx'
import { SeverityMark } from './severity-mark.tsx'
import { useApprovalKeys } from './use-approval-keys.ts'

/** What waits in all chats; that of `useInbox`. */
export interface ApprovalInboxProps {
  readonly approvals: readonly PendingApproval[]
  /** What goes wrong with it comes back as a refusal. */
  readonly onDecide: (approvalId: string, decision: Decision) => void | Promise<void>
  /** Why decisions were not accepted, by approval. */
  readonly refusals?: ReadonlyMap<string, ToldError> | undefined
  /** Approvals whose decision is on its way: they cannot be decided meanwhile. */
  readonly deciding?: ReadonlySet<string> | undefined
  /** Why the list could not be read; it may be out of date. */
  readonly problem?: ToldError | undefined
  /** A link to the chat that the call was made in; only the owner of a chat is told which it is. */
  readonly renderChatLink?: ((chatId: string) => ReactNode) | undefined
}

/** What waits for a decision in all chats. */
export function ApprovalInbox(props: ApprovalInboxProps) {
  const { approvals, onDecide, refusals, deciding, problem, renderChatLink } = props
  const { inbox } = useAdkTexts()
  const listRef = useRef<HTMLElement>(null)
  const decide = (approvalId: string, decision: Decision): void => {
    // The buttons go away with what was decided; the list stays.
    listRef.current?.focus()
    void onDecide(approvalId, decision)
  }
  return (
    <section className="adk-inbox" aria-label={inbox.title} tabIndex={-1} ref={listRef}>
      <p className="adk-hidden" role="status">
        {inbox.label(approvals.length)}
      </p>
      {problem && <p className="adk-failure">{inbox.unread}</p>}
      {approvals.length === 0 && <p className="adk-inbox-empty">{inbox.empty}</p>}
      <ul>
        {approvals.map((approval) => (
          <InboxItem
            key={approval.id}
            approval={approval}
            refusal={refusals?.get(approval.id)}
            travels={deciding?.has(approval.id) === true}
            onDecide={(decision) => decide(approval.id, decision)}
            link={approval.chatId !== undefined && renderChatLink?.(approval.chatId)}
          />
        ))}
      </ul>
    </section>
  )
}

interface InboxItemProps {
  readonly approval: PendingApproval
  readonly refusal: ToldError | undefined
  /** Whether its decision is on its way. */
  readonly travels: boolean
  readonly onDecide: (decision: Decision) => void
  readonly link: ReactNode
}

function InboxItem({ approval, refusal, travels, onDecide, link }: InboxItemProps) {
  const texts = useAdkTexts()
  const [over, setOver] = useState(false)
  const itemRef = useApprovalKeys<HTMLLIElement>()
  const { toolName, args, title, hint, severity, deadline, approvals, voted } = approval
  const votes = { given: approvals.given, voted }
  const deed = useDeed(toolName, args)
  return (
    <li ref={itemRef} className="adk-inbox-item" aria-label={toLiteral(deed)}>
      <div className="adk-tool-header">
        <span className="adk-title">{title ?? toolName}</span>
        <SeverityMark severity={severity} />
        <Countdown deadline={deadline} onOver={setOver} />
      </div>
      <p className="adk-deed">
        <LiteralText text={deed} />
      </p>
      {hint && (
        <p className="adk-hint">
          <LiteralText text={hint} />
        </p>
      )}
      {approvals.needed > 1 && (
        <p className="adk-votes">{texts.approval.votes(votes, approvals.needed)}</p>
      )}
      <ApprovalForm
        args={args}
        // Kept: what was typed is still there if it is refused.
        hidden={travels || voted}
        editable={approvals.needed === 1 && Object.keys(args).length > 0}
        onDecide={onDecide}
      />
      <p className="adk-status" role="status">
        {travels && texts.inbox.deciding}
      </p>
      {over && <p className="adk-status">{texts.approval.over}</p>}
      <Refused refusal={refusal} />
      {link}
    </li>
  )
}
