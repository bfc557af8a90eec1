import { type ReactNode, useRef, useState } from 'react'

import type { AdkLabels } from '../labels/labels.ts'
import type { PendingApproval } from '../../protocol/server-views.ts'
import type { ShownPreview } from '../../protocol/preview.ts'
import type { WaitingDecision, WaitingDecisions } from '../../client/api/decision-outbox.ts'
import { useAdkLabels, useEditedDescription, useDescribeCall } from '../provider.tsx'
import { type Decision, asksForAnswer, isUndecided } from '../reading/approval.ts'
import { QuestionForm } from './question-card.tsx'
import { toLiteral } from '../../shared/literal-text.ts'
import type { ServerError } from '../reading/problem.ts'
import { readAskingTool, toQuestionTitle, toCallTitle } from '../reading/question.ts'
import { raiseShownSeverity } from '../reading/risk.ts'
import { type Edit, showEdit, useEdit } from '../hooks/use-edit.ts'
import { quoteValues } from '../reading/quoted-values.ts'
import { ApprovalNotices } from './approval-notices.tsx'
import { ApprovalForm, type Draft, EMPTY_DRAFT, useRefusalOfDraft } from './approval-form.tsx'
import { ApprovalLine, ApprovalList, LoadMore } from './approval-list.tsx'
import {
  Time,
  ApprovalPath,
  ApprovalPeople,
  namePerson,
  CancelDecision,
  describeWaiting,
  RefusalNote,
  SeverityMark,
} from './approval-parts.tsx'
import { DecideTogether } from './decide-together.tsx'
import { ShareApproval } from './share-approval.tsx'
import { SignInForm } from './sign-in-card.tsx'
import { PendingDetails, useShownPreview } from './call-preview.tsx'
import { Countdown } from './countdown.tsx'
import { LiteralText } from './call-details.tsx'
import type { ApprovalLinkState } from '../hooks/use-approval-link.ts'
import { OutlinedButton } from './buttons.tsx'
import { withoutUndefined } from '../../shared/collections.ts'
import type { Inbox } from '../hooks/use-approval-lists.ts'

/**
 * The part of the result of `useInbox` that the inbox shows.
 *
 * @inline
 */
type ShownInbox = Omit<Inbox, 'undecided' | 'refresh'>

/**
 * Pending approvals and actions: an `inbox`, or its parts. A prop replaces the same part of `inbox`.
 *
 * @inline
 */
export interface ApprovalInboxProps {
  /** The result of `useInbox`. */
  readonly inbox?: ShownInbox | undefined
  /** The approvals to list. Default: those of `inbox`, or none. */
  readonly approvals?: readonly PendingApproval[] | undefined
  /** Sends a decision. Report an error through `refusals`. */
  readonly onDecide?: ((approvalId: string, decision: Decision) => void | Promise<void>) | undefined
  /** Why the server refused decisions, by approval id. */
  readonly refusals?: ReadonlyMap<string, ServerError> | undefined
  /** The ids of approvals whose decision is being sent. Their forms are hidden. */
  readonly deciding?: ReadonlySet<string> | undefined
  /** Decisions that wait for the connection, by approval id. */
  readonly waitingDecisions?: WaitingDecisions | undefined
  /** Takes back a decision that waits for the connection. Returns false if it may have arrived. */
  readonly onCancelDecision?: ((approvalId: string) => boolean) | undefined
  /** Why the list could not be refreshed. */
  readonly problem?: ServerError | undefined
  /** Sends decisions about several approvals at once. Without it, each is decided by itself. */
  readonly onDecideTogether?:
    | ((approvals: readonly PendingApproval[], approved: boolean) => void | Promise<void>)
    | undefined
  /** Withdraws the person's vote. Without it, there is no button to withdraw a vote. */
  readonly onWithdraw?: ((approvalId: string) => void | Promise<void>) | undefined
  /** Whether more approvals are pending than `approvals` contains. Default false. */
  readonly hasMore?: boolean | undefined
  /** Loads the next page of approvals. */
  readonly onLoadMore?: (() => void) | undefined
  /** Whether the next page is being loaded. Default false. */
  readonly loadingMore?: boolean | undefined
  /**
   * Whether each approval is one line that the person opens, for pages with many approvals. The list is then one tab stop: the arrow
   * keys, `j` and `k` move between the approvals, Enter opens one, and Escape closes it. Default false: all are open.
   */
  readonly collapsible?: boolean | undefined
  /** The id of the approval that is open until the person opens or closes one, if the list is `collapsible`. Default: none. */
  readonly defaultOpenId?: string | undefined
  /** Renders a link to the call's chat. The server sends `chatId` to the owner of the chat only. */
  readonly renderChatLink?: ((chatId: string) => ReactNode) | undefined
}

/** Lists the pending approvals of all chats, each with a form to decide it. */
export function ApprovalInbox(props: ApprovalInboxProps) {
  const shown = toParts(props)
  const { approvals = [], onDecide, onWithdraw, refusals, deciding, problem } = shown
  const { renderChatLink, collapsible = false, onDecideTogether } = shown
  const describe = useDescribeCall()
  const { inbox } = useAdkLabels()
  const listRef = useRef<HTMLElement>(null)
  // The buttons of a decided approval disappear. The list stays.
  const focusList = (): void => listRef.current?.focus()
  const decide = (approvalId: string, decision: Decision): void => {
    focusList()
    void onDecide?.(approvalId, decision)
  }
  const decideTogether = (chosen: readonly PendingApproval[], approved: boolean): void => {
    focusList()
    void onDecideTogether?.(chosen, approved)
  }
  const cancel = (approvalId: string): boolean => {
    focusList()
    return shown.onCancelDecision?.(approvalId) ?? false
  }
  const withdraw = (approvalId: string): void => {
    focusList()
    void onWithdraw?.(approvalId)
  }
  return (
    <ApprovalList
      label={inbox.title}
      collapsible={collapsible}
      defaultOpenId={shown.defaultOpenId}
      sectionRef={listRef}
      before={
        <>
          <p className="adk-hidden" role="status">
            {inbox.label(approvals.filter(isUndecided).length, shown.hasMore)}
          </p>
          {problem && <p className="adk-failure">{inbox.loadFailed}</p>}
          {approvals.length === 0 && <p className="adk-inbox-empty">{inbox.empty}</p>}
          {onDecideTogether && (
            <DecideTogether
              calls={approvals.filter(
                (each) =>
                  isUndecided(each) &&
                  deciding?.has(each.id) !== true &&
                  shown.waitingDecisions?.has(each.id) !== true,
              )}
              onDecide={decideTogether}
            />
          )}
        </>
      }
      after={<LoadMore {...shown} onGone={focusList} />}
      items={approvals.map((approval) => ({
        id: approval.id,
        ...nameItem(approval, describe),
        summary: <InboxSummary approval={approval} />,
        details: (
          <InboxItem
            approval={approval}
            refusal={refusals?.get(approval.id)}
            isSending={deciding?.has(approval.id) === true}
            waiting={shown.waitingDecisions?.get(approval.id)}
            onCancelDecision={shown.onCancelDecision && (() => cancel(approval.id))}
            onDecide={(decision) => decide(approval.id, decision)}
            onWithdraw={onWithdraw && (() => withdraw(approval.id))}
            link={approval.chatId !== undefined && renderChatLink?.(approval.chatId)}
            hasSummary={collapsible}
          />
        ),
      }))}
    />
  )
}

/** Returns the props, with the parts of the inbox that they do not replace. */
function toParts({ inbox, ...own }: ApprovalInboxProps): Omit<ApprovalInboxProps, 'inbox'> {
  const { decide: onDecide, cancelDecision: onCancelDecision } = inbox ?? {}
  const { withdraw: onWithdraw, loadMore: onLoadMore } = inbox ?? {}
  const { decideTogether: onDecideTogether } = inbox ?? {}
  const actions = { onDecide, onDecideTogether, onCancelDecision, onWithdraw, onLoadMore }
  return { ...inbox, ...actions, ...withoutUndefined(own) }
}

/** Returns the accessible name of an approval, and its severity. */
function nameItem(approval: PendingApproval, describe: ReturnType<typeof useDescribeCall>) {
  const { toolName, args, preview, hint } = approval
  const isQuestion = asksForAnswer(approval) && hint !== undefined
  const label = isQuestion ? toLiteral(hint) : describe(toolName, args, preview?.headline)
  return { label, severity: raiseShownSeverity(approval, args, label).severity }
}

interface InboxItemProps {
  readonly approval: PendingApproval
  readonly refusal: ServerError | undefined
  /** Whether its decision is being sent. */
  readonly isSending: boolean
  /** Its decision, if it waits for the connection. */
  readonly waiting: WaitingDecision | undefined
  readonly onCancelDecision: (() => boolean) | undefined
  readonly onDecide: (decision: Decision) => void
  readonly onWithdraw: (() => void) | undefined
  readonly link: ReactNode
  /** Whether the line above shows the title and the call. */
  readonly hasSummary: boolean
}

function InboxSummary({ approval }: Pick<InboxItemProps, 'approval'>) {
  const { inbox } = useAdkLabels()
  const { preview, requester, deadline, args } = approval
  const { name, description } = useDescription(approval, preview?.headline)
  const { severity } = raiseShownSeverity(approval, args, description)
  const time = (
    <>
      {inbox.due} <Time at={deadline} />
    </>
  )
  const mark = <SeverityMark severity={severity} />
  return <ApprovalLine title={name} {...{ description, values: args, mark, requester, time }} />
}

/** Returns the title and the description of an approval. A question is described by its own text. */
function useDescription(approval: PendingApproval, headline: string | undefined, isEdited = false) {
  const labels = useAdkLabels()
  const { toolName, args, hint, title } = approval
  const name = toCallTitle(toolName, title, labels)
  const described = useEditedDescription({ name: toolName, title: name, isEdited }, args, {
    phase: 'pending',
    headline,
  })
  return asksForAnswer(approval) && hint !== undefined
    ? { name: toQuestionTitle(approval, args, labels), description: hint, isDescribed: true }
    : { name, ...described }
}

function InboxItem(props: InboxItemProps) {
  const { approval, waiting, onDecide, link, hasSummary } = props
  const isSending = props.isSending || waiting !== undefined
  const labels = useAdkLabels()
  const [isOverdue, setOverdue] = useState(false)
  const { toolName, args, hint, deadline, voted, mayDecide = true } = approval
  const { decide, ...current } = useShownPreview(approval.preview, props.refusal, onDecide)
  const [draft, setDraft] = useState(EMPTY_DRAFT)
  const refusal = useRefusalOfDraft(props.refusal, draft)
  const edit = useEdit({
    approvalId: approval.id,
    args,
    schema: approval.argsSchema,
    preview: current.preview,
    draft,
  })
  const { isEdited, severity, misleading, ...call } = showEdit(edit, { args, ...current })
  const { name, description, isDescribed } = useDescription(
    { ...approval, args: call.args },
    call.preview?.headline,
    isEdited,
  )
  const shown = raiseShownSeverity(
    {
      ...approval,
      severity: severity ?? approval.severity,
      misleading: misleading ?? approval.misleading,
    },
    call.args,
    description,
  )
  return (
    <>
      <div className="adk-tool-header">
        {!hasSummary && (
          <>
            <LiteralText in="span" className="adk-title" text={name} />
            <SeverityMark severity={shown.severity} />
          </>
        )}
        <Countdown deadline={deadline} onOverdue={setOverdue} />
      </div>
      <ApprovalPath path={approval.path} toolName={findAskingTool(approval)} />
      {/* The line above shows the call as it was requested. */}
      {(!hasSummary || isEdited) && (
        <LiteralText
          in="p"
          className="adk-call-description"
          text={description}
          values={call.args}
          multiline={asksForAnswer(approval)}
        />
      )}
      {!asksForAnswer(approval) && (
        <PendingDetails
          {...{ ...call, toolName, description, isDescribed, hint, refusal }}
          sum={undefined}
        />
      )}
      <ApprovalPeople approval={approval} />
      <VoteCount approval={approval} />
      <InboxForm
        approval={shown}
        {...{ draft, edit, decide, onDecide }}
        preview={call.preview}
        description={
          isDescribed ? quoteValues(description, call.args, labels.approval.quote) : undefined
        }
        onDraft={setDraft}
        hidden={isSending || !mayDecide}
      />
      {!mayDecide && <WhyNot approval={approval} />}
      {!mayDecide && !isSending && <ShareApproval approvalId={approval.id} />}
      {voted && !isSending && <Withdraw onWithdraw={props.onWithdraw} />}
      <p className="adk-status" role="status">
        {describeSending(props, labels)}
      </p>
      <CancelDecision {...props} isWaiting={waiting?.mayHaveArrived === false} />
      {isOverdue && <p className="adk-status">{labels.approval.deadlinePassed}</p>}
      <RefusalNote refusal={refusal} />
      <ApprovalNotices approvalId={approval.id} />
      {link}
    </>
  )
}

/** Returns how far the decision of a person has come on its way to the server. */
function describeSending(
  { approval, isSending, waiting }: InboxItemProps,
  labels: AdkLabels,
): string {
  if (waiting)
    return toLiteral(describeWaiting(waiting, { labels, isQuestion: asksForAnswer(approval) }))
  return isSending ? labels.inbox.sending : ''
}

/** Returns the tool of an approval. For a question of an MCP server: the tool whose call asks. */
function findAskingTool({ kind, toolName, args }: PendingApproval): string {
  return kind === 'elicitation' ? (readAskingTool(args) ?? toolName) : toolName
}

function VoteCount({ approval: { approvals, voted } }: Pick<InboxItemProps, 'approval'>) {
  const labels = useAdkLabels()
  const { given, needed } = approvals
  if (needed <= 1) return null
  return <p className="adk-votes">{labels.approval.votes({ given, voted }, needed)}</p>
}

function WhyNot({ approval: { whyNot = '' } }: Pick<InboxItemProps, 'approval'>) {
  const reason = useAdkLabels().inbox.context.whyNot[whyNot]
  return reason === undefined ? null : <p className="adk-status">{reason}</p>
}

function Withdraw({ onWithdraw }: Pick<InboxItemProps, 'onWithdraw'>) {
  const { inbox } = useAdkLabels()
  if (!onWithdraw) return null
  return (
    <div className="adk-actions">
      <OutlinedButton onClick={onWithdraw}>{inbox.withdraw}</OutlinedButton>
    </div>
  )
}

interface InboxFormProps {
  readonly approval: PendingApproval
  readonly preview: ShownPreview | undefined
  readonly draft: Draft
  readonly onDraft: (draft: Draft) => void
  readonly edit: Edit | undefined
  /** What the call would do, as edited. */
  readonly description: string | undefined
  readonly hidden: boolean
  /** Decides a call, with the preview that the person sees. */
  readonly decide: (decision: Decision) => void
  readonly onDecide: (decision: Decision) => void
}

/** The form for the kind of an approval. Hidden, not removed, so that it keeps its input in case the server refuses the decision. */
function InboxForm(props: InboxFormProps) {
  const { approval, hidden, draft, onDraft, decide, onDecide } = props
  const { toolName, args, approvals, signIn, voted } = approval
  if (signIn)
    return <SignInForm approvalId={approval.id} {...{ signIn, toolName, hidden, onDecide }} />
  if (asksForAnswer(approval))
    return <QuestionForm {...{ approval, args, draft, hidden, onDraft, onDecide }} />
  return (
    <ApprovalForm
      {...props}
      hidden={hidden || voted}
      args={args}
      editable={approvals.needed === 1 && Object.keys(args).length > 0}
      onDecide={decide}
    />
  )
}

/** Shows the approval of a link, as `useApprovalLink` returns it, with a form to decide it once. */
export function LinkedApprovalView({ link }: { readonly link: ApprovalLinkState }) {
  const { share, history, inbox } = useAdkLabels()
  const { state, linked, outcome, problem, deciding, open, decide } = link
  return (
    <section className="adk-linked">
      {state === 'closed' && (
        <>
          <p>{share.closed}</p>
          <button type="button" className="adk-button adk-primary" onClick={() => void open()}>
            {share.show}
          </button>
        </>
      )}
      <p role="status">
        {state === 'opening' && history.loading}
        {state === 'decided' && share.thanks(history.states[outcome ?? ''] ?? outcome ?? '')}
        {state === 'failed' && share.invalid}
      </p>
      {state === 'failed' && problem?.code === 'not-allowed' && <p>{problem.message}</p>}
      {state === 'open' && linked && (
        <>
          <p>
            {share.from} <LiteralText text={namePerson(linked.from, inbox.context)} />
          </p>
          <ApprovalInbox
            approvals={[linked.approval]}
            onDecide={(_id, decision) => decide(decision)}
            deciding={deciding ? new Set([linked.approval.id]) : undefined}
            refusals={problem && new Map([[linked.approval.id, problem]])}
          />
        </>
      )}
    </section>
  )
}
