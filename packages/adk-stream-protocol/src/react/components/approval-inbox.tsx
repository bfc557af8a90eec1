import { type ReactNode, useEffect, useRef, useState } from 'react'

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
  /** Withdraws the reader's vote. Without it, votes cannot be withdrawn here. */
  readonly onWithdraw?: ((approvalId: string) => void | Promise<void>) | undefined
  /** Whether more is waiting than is listed. Default false. */
  readonly hasMore?: boolean | undefined
  /** Lists more. */
  readonly onLoadMore?: (() => void) | undefined
  /** Whether more is being loaded. Default false. */
  readonly loadingMore?: boolean | undefined
  /** A link to the chat that the call was made in; only the owner of a chat is told which it is. */
  readonly renderChatLink?: ((chatId: string) => ReactNode) | undefined
}

/** What waits for a decision in all chats. */
export function ApprovalInbox(props: ApprovalInboxProps) {
  const { approvals, onDecide, onWithdraw, refusals, deciding, problem, renderChatLink } = props
  const { inbox } = useAdkTexts()
  const listRef = useRef<HTMLElement>(null)
  // The buttons go away with what was decided; the list stays.
  const focusList = (): void => listRef.current?.focus()
  const decide = (approvalId: string, decision: Decision): void => {
    focusList()
    void onDecide(approvalId, decision)
  }
  const withdraw = (approvalId: string): void => {
    focusList()
    void onWithdraw?.(approvalId)
  }
  return (
    <section className="adk-inbox" aria-label={inbox.title} tabIndex={-1} ref={listRef}>
      <p className="adk-hidden" role="status">
        {inbox.label(approvals.length, props.hasMore)}
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
            onWithdraw={onWithdraw && (() => withdraw(approval.id))}
            link={approval.chatId !== undefined && renderChatLink?.(approval.chatId)}
          />
        ))}
      </ul>
      <LoadMore {...props} onGone={focusList} />
    </section>
  )
}

interface LoadMoreProps extends Pick<ApprovalInboxProps, 'hasMore' | 'onLoadMore' | 'loadingMore'> {
  /** Called when all is listed, and the button goes away with the focus. */
  readonly onGone: () => void
}

/** The button that lists more. It keeps the focus while more is loaded. */
function LoadMore({ hasMore = false, onLoadMore, loadingMore = false, onGone }: LoadMoreProps) {
  const { inbox } = useAdkTexts()
  const isClicked = useRef(false)
  const isShown = onLoadMore !== undefined && (hasMore || loadingMore)
  useEffect(() => {
    if (isShown || !isClicked.current) return
    isClicked.current = false
    if (document.activeElement === document.body) onGone()
  })
  if (!isShown) return null
  const loadMore = (): void => {
    if (loadingMore) return
    isClicked.current = true
    onLoadMore()
  }
  return (
    <button
      type="button"
      className="adk-button adk-outlined adk-inbox-more"
      // Not `disabled`, which would take the focus away.
      aria-disabled={loadingMore}
      onClick={loadMore}
    >
      {loadingMore ? inbox.loadingMore : inbox.loadMore}
    </button>
  )
}

interface InboxItemProps {
  readonly approval: PendingApproval
  readonly refusal: ToldError | undefined
  /** Whether its decision is on its way. */
  readonly travels: boolean
  readonly onDecide: (decision: Decision) => void
  readonly onWithdraw: (() => void) | undefined
  readonly link: ReactNode
}

function InboxItem(props: InboxItemProps) {
  const { approval, refusal, travels, onDecide, onWithdraw, link } = props
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
      {voted && !travels && onWithdraw && (
        <div className="adk-actions">
          <button type="button" className="adk-button adk-outlined" onClick={onWithdraw}>
            {texts.inbox.withdraw}
          </button>
        </div>
      )}
      <p className="adk-status" role="status">
        {travels && texts.inbox.deciding}
      </p>
      {over && <p className="adk-status">{texts.approval.over}</p>}
      <Refused refusal={refusal} />
      {link}
    </li>
  )
}
