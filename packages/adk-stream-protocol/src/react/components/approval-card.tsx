import { useState } from 'react'

import type { WaitingDecision } from '../../client/api/decision-outbox.ts'
import { useAdkLabels, useEditedDescription } from '../provider.tsx'
import { type Approval, type Decision, type Votes, isPending } from '../reading/approval.ts'
import { toLiteral } from '../../shared/literal-text.ts'
import { toCallTitle } from '../reading/question.ts'
import { quoteValues } from '../reading/quoted-values.ts'
import { raiseShownSeverity } from '../reading/risk.ts'
import {
  type Arguments,
  type Call,
  type CallPhase,
  getArguments,
  getToolName,
  isUnfinished,
  readFailure,
} from '../reading/call.ts'
import type { ServerError } from '../reading/problem.ts'
import type { PendingSum } from '../reading/preview.ts'
import { ArgumentsTable, LiteralText, CallDetails } from './call-details.tsx'
import { Countdown } from './countdown.tsx'
import {
  ApprovalForm,
  type Draft,
  EMPTY_DRAFT,
  UnsentDraft,
  useApprovalKeys,
  useRefusalOfDraft,
} from './approval-form.tsx'
import { type Edit, showEdit, useEdit } from '../hooks/use-edit.ts'
import {
  ApprovalPath,
  DecidedBy,
  Receipt,
  UnderstoodFrom,
  CancelDecision,
  describeWaiting,
  RefusalNote,
  SeverityMark,
} from './approval-parts.tsx'
import { PendingDetails, useShownPreview } from './call-preview.tsx'
import { returnFocus, useFocusStatus } from './focus.ts'
import { ShareApproval } from './share-approval.tsx'
import { describeCallState, WaitsForNote } from './tool-card.tsx'
import type { AdkLabels } from '../labels/labels.ts'

/**
 * Props of `ApprovalCard`.
 *
 * @inline
 */
export interface ApprovalCardProps {
  readonly call: Call
  readonly approval: Approval
  /** Called with the person's decision. */
  readonly onDecide: (decision: Decision) => void
  /** Why the server refused the last decision. */
  readonly refusal?: ServerError | undefined
  /** How many people have approved, if the approval needs several. */
  readonly votes?: Votes | undefined
  /** What the approved call waits for inside it, as a sentence. */
  readonly waitsFor?: string | undefined
  /** How far the person's decision has come. Default `confirmed`. */
  readonly delivery?: Delivery | undefined
  /** The JSON Schema of the arguments, for the form that edits them. */
  readonly argsSchema?: Readonly<Record<string, unknown>> | undefined
  /** The sum of what is pending in the chat. */
  readonly sum?: PendingSum | undefined
  /** Reads the approval again, for a preview that could not be made. */
  readonly onRefresh?: (() => void) | undefined
  /** The person's vote or answer, if it waits for the connection. */
  readonly waitingDecision?: WaitingDecision | undefined
  /** Takes back a decision that waits for the connection. Returns false if it may have arrived. */
  readonly onCancelDecision?: (() => boolean) | undefined
}

/** Shows a call that needs approval: what it would do, the form to decide it, and a receipt of what it did. */
export function ApprovalCard(props: ApprovalCardProps) {
  const { call, onDecide, refusal, votes, delivery = 'confirmed', sum } = props
  const { waitingDecision: waiting } = props
  const labels = useAdkLabels()
  const [isOverdue, setOverdue] = useState(false)
  const cardRef = useApprovalKeys<HTMLDivElement>()
  const pending = isPending(call, props.approval)
  const hasVoted = votes?.voted === true
  const args = getArguments(call)
  const name = getToolName(call)
  const title = toCallTitle(name, props.approval.title ?? call.title, labels)
  const phase = readPhase(call, props.approval)
  const current = useShownPreview(props.approval.preview, refusal, onDecide)
  const [draft, setDraft] = useState(EMPTY_DRAFT)
  const { approvalId } = props.approval
  const edit = useEdit({
    approvalId,
    args,
    schema: props.argsSchema,
    preview: current.preview,
    draft,
  })
  const { decide, ...seenCall } = current
  const shown = showEdit(pending ? edit : undefined, { args, ...seenCall })
  const { preview } = shown
  const { headline } = (phase === 'pending' ? preview : props.approval.receipt) ?? {}
  const ran = props.approval.editedArgs ?? shown.args
  const { description, isDescribed } = useEditedDescription(
    { name, title, isEdited: shown.isEdited },
    ran,
    { phase, headline },
  )
  const severity = shown.severity ?? props.approval.severity
  const approval = raiseShownSeverity(
    {
      ...props.approval,
      ...(severity && { severity }),
      ...(shown.misleading && { misleading: true }),
    },
    ran,
    description,
  )
  return (
    <div
      ref={cardRef}
      className="adk-tool adk-approval"
      role="group"
      data-state={call.state}
      data-ending={approval.state}
      data-phase={phase}
      data-severity={approval.severity}
      data-approval={approval.approvalId}
      data-failed={phase === 'failed'}
      data-tool={name}
      data-tool-call={call.toolCallId}
      aria-label={`${toLiteral(title)}: ${quoteValues(description, ran, labels.approval.quote)}`}
      // Focusable by script, and not by the Tab key.
      tabIndex={-1}
    >
      <CardHeader
        {...{ call, approval, title }}
        waits={isWaitingInside(props)}
        onOverdue={setOverdue}
      />
      <ApprovalPath path={approval.path} toolName={name} />
      <LiteralText in="p" className="adk-call-description" text={description} values={ran} />
      {pending && (
        <PendingDetails
          {...{ ...shown, toolName: name, description, isDescribed, refusal }}
          // The sum contains the amount that was requested.
          sum={shown.isEdited ? undefined : sum}
          hint={approval.hint}
        />
      )}
      {approval.editedArgs && <ArgumentsTable args={args} edited={approval.editedArgs} />}
      {waiting?.decision.args && (
        <ArgumentsTable args={args} edited={waiting.decision.args} isUnsent />
      )}
      <ApprovalDecision
        {...{ approval: { ...approval, preview }, args, votes, refusal, draft, edit }}
        description={isDescribed ? quoteValues(description, ran, labels.approval.quote) : undefined}
        onDraft={(next) => {
          setDraft(next)
          // The response with the schema may have been lost.
          if (next.isEditing && !draft.isEditing && !props.argsSchema) props.onRefresh?.()
        }}
        onDecide={decide}
        onRefresh={props.onRefresh}
        state={pending ? 'open' : 'closed'}
        isWaiting={waiting !== undefined}
      />
      <ApprovalStatus {...{ call, approval, waiting, refusal, delivery, isOverdue, hasVoted }} />
      <WaitsForNote waitsFor={props.waitsFor} />
      {!pending && <UnderstoodFrom reply={approval.reply} />}
      <CancelDecision {...props} isWaiting={isDecisionWaiting(waiting, delivery)} />
      {!pending && <Outcome call={call} approval={approval} />}
    </div>
  )
}

function Outcome({ call, approval }: Pick<ApprovalCardProps, 'call' | 'approval'>) {
  const failure = approval.state === 'approved' ? readFailure(call, approval.outcome) : undefined
  // The receipt is in the language of the person. The result is for the model.
  const reason = failure && (approval.receipt?.blocked ?? failure.reason)
  return (
    <>
      {reason && <LiteralText in="p" className="adk-failure" text={reason} />}
      <Receipt approval={approval} />
      <CallDetails call={call} />
    </>
  )
}

interface ApprovalStatusProps extends Pick<ApprovalCardProps, 'call' | 'approval' | 'refusal'> {
  readonly waiting: WaitingDecision | undefined
  readonly delivery: Delivery
  /** Whether the deadline has passed by the local clock. */
  readonly isOverdue: boolean
  /** Whether the person has already voted on an approval that needs several people. */
  readonly hasVoted: boolean
}

/** The status as a sentence, and who decided. */
function ApprovalStatus(props: ApprovalStatusProps) {
  const { call, approval, waiting, isOverdue, hasVoted } = props
  const labels = useAdkLabels()
  const pending = isPending(call, approval)
  const statusRef = useFocusStatus(pending && !hasVoted && !waiting)
  return (
    <div className="adk-ending">
      {/* While the buttons are visible, only screen readers need the status. The buttons stay after the deadline: the local clock may be wrong, and the server refuses late decisions. */}
      <p
        className={pending && !isOverdue && !waiting ? 'adk-hidden' : 'adk-status'}
        role="status"
        tabIndex={-1}
        ref={statusRef}
      >
        {toLiteral(
          waiting
            ? describeWaiting(waiting, { labels, isQuestion: false })
            : describeApprovalStatus(props, labels),
        )}
      </p>
      {!pending && <DecidedBy approval={approval} />}
    </div>
  )
}

interface CardHeaderProps {
  readonly call: Call
  readonly approval: Approval
  readonly title: string
  /** Whether the call waits for a person inside it, or for the server to confirm the decision. */
  readonly waits: boolean
  readonly onOverdue: (isOverdue: boolean) => void
}

function CardHeader({ call, approval, title, waits, onOverdue }: CardHeaderProps) {
  const labels = useAdkLabels()
  const { severity, deadline } = approval
  const pending = isPending(call, approval)
  return (
    <header className="adk-tool-header">
      <span className="adk-dot" aria-hidden="true" />
      <LiteralText in="span" className="adk-title" text={title} />
      {pending && <SeverityMark severity={severity} />}
      {pending && deadline !== undefined ? (
        <Countdown deadline={deadline} onOverdue={onOverdue} />
      ) : (
        <span className="adk-tool-state">
          {waits ? labels.tool.waitingInside : describeApprovalState(call, approval, labels)}
        </span>
      )}
    </header>
  )
}

interface ApprovalDecisionProps {
  readonly approval: Approval
  readonly args: Arguments
  readonly draft: Draft
  readonly onDraft: (draft: Draft) => void
  readonly edit: Edit | undefined
  /** What the call would do, as edited. */
  readonly description: string | undefined
  readonly state: 'open' | 'closed'
  /** Whether a decision waits for the connection. */
  readonly isWaiting: boolean
  readonly votes: Votes | undefined
  readonly refusal: ServerError | undefined
  readonly onRefresh: (() => void) | undefined
  readonly onDecide: (decision: Decision) => void
}

const NO_VOTES: Votes = { given: 0, voted: false }

/** The form of a pending approval, and the reason if the server refused the last decision. */
function ApprovalDecision(props: ApprovalDecisionProps) {
  const { approval, args, draft, edit, description, state, votes = NO_VOTES, onRefresh } = props
  const labels = useAdkLabels()
  const refusal = useRefusalOfDraft(props.refusal, draft)
  const { approvers = 1, editable, preview } = approval
  const isOpen = state === 'open'
  // Shown whatever the outcome is: the person must know that their decision was not the one that counted.
  if (approval.state !== 'requested')
    return (
      <>
        {isEndedUndecided(approval) && <UnsentDraft draft={draft} args={args} />}
        <RefusalNote key="refusal" refusal={refusal} />
      </>
    )
  return (
    <>
      {isOpen && approvers > 1 && (
        <p className="adk-votes">{labels.approval.votes(votes, approvers)}</p>
      )}
      <ApprovalForm
        {...{ approval, args, preview, draft, edit, description }}
        onDraft={props.onDraft}
        onDecide={props.onDecide}
        // Hidden, not removed: the form keeps its input in case the server refuses the decision.
        hidden={!isOpen || votes.voted || props.isWaiting}
        editable={editable && Object.keys(args).length > 0}
      />
      {isOpen && votes.voted && <ShareApproval approvalId={approval.approvalId} />}
      {isOpen && !edit && <RetryPreview approval={approval} onRefresh={onRefresh} />}
      {/* With a key, so that it stays the same element when the approval ends, and is announced once. */}
      <RefusalNote key="refusal" refusal={refusal} />
    </>
  )
}

/** A button for a preview that could not be made. */
function RetryPreview({
  approval: { hasPreview, preview },
  onRefresh,
}: Pick<ApprovalDecisionProps, 'approval' | 'onRefresh'>) {
  const labels = useAdkLabels()
  if (!hasPreview || preview || !onRefresh) return null
  return (
    <button type="button" className="adk-link adk-retry" ref={returnFocus} onClick={onRefresh}>
      {labels.approval.retryPreview}
    </button>
  )
}

/** Whether a call waits for a person inside it, or the server has not confirmed the decision, so that nothing runs (RE162). */
function isWaitingInside(props: ApprovalCardProps): boolean {
  const { call, approval, waitsFor, refusal, delivery = 'confirmed' } = props
  if (call.state !== 'approval-responded') return waitsFor !== undefined
  const isConfirmed = delivery === 'confirmed' && !refusal
  return (
    waitsFor !== undefined || !isConfirmed || (approval.isHeld === true && call.approval.approved)
  )
}

/** Whether the person can take back their decision, because it waits for the connection. */
function isDecisionWaiting(waiting: WaitingDecision | undefined, delivery: Delivery): boolean {
  return waiting ? !waiting.mayHaveArrived : delivery === 'waiting-for-connection'
}

/** Whether an approval ended without a decision, so that what the person typed was not sent. */
function isEndedUndecided({ state }: Approval): boolean {
  return state === 'expired' || state === 'cancelled'
}

/** Returns the state of a call that needs approval, in one or two words. */
function describeApprovalState(
  call: Call,
  { state, outcome }: Approval,
  labels: AdkLabels,
): string {
  // A denial may wait for other decisions before the model is told. Nothing runs.
  if (call.state === 'approval-responded' && !call.approval.approved) return labels.tool.denied
  const hasEnded = state !== 'requested' && state !== 'approved'
  return hasEnded ? labels.approval.states[state] : describeCallState(call, labels, outcome)
}

/** Returns how far a call that needs approval has come. */
function readPhase(call: Call, { state, outcome }: Approval): CallPhase {
  if (state !== 'requested' && state !== 'approved') return state
  if (call.state !== 'output-available' && call.state !== 'output-error') return 'pending'
  if (isUnfinished(call)) return 'pending'
  return readFailure(call, outcome) ? 'failed' : 'succeeded'
}

/** How far a decision has come on its way to the server. `confirmed` if the transport does not report it. */
type Delivery = 'waiting-for-connection' | 'sending' | 'confirmed'

/** Returns the status of an approval as a sentence. Screen readers announce it when it changes. */
function describeApprovalStatus(
  { call, approval: { state, reason, outcome, isHeld }, ...props }: ApprovalStatusProps,
  { approval }: AdkLabels,
): string {
  const { refusal, delivery, isOverdue, hasVoted } = props
  switch (state) {
    case 'requested':
      if (call.state === 'approval-requested' && hasVoted) return approval.waitingForOthers
      if (call.state === 'approval-requested')
        return isOverdue ? approval.deadlinePassed : approval.waiting
      if (call.state === 'approval-responded' && refusal) return approval.refused
      if (call.state === 'approval-responded' && delivery !== 'confirmed')
        return delivery === 'sending'
          ? approval.sending
          : approval.waitingForConnection(call.approval.approved)
      if (call.state === 'approval-responded' && isHeld)
        return approval.held(call.approval.approved)
      return call.state === 'approval-responded' && !call.approval.approved
        ? approval.denying
        : approval.running
    case 'approved':
      return readFailure(call, outcome) ? approval.failed : approval.outcomes.approved
    case 'expired':
    case 'unknown':
      return approval.outcomes[state]
    case 'denied':
    case 'cancelled':
      return reason
        ? approval.withReason(approval.outcomes[state], reason)
        : approval.outcomes[state]
  }
}
