import type { ReactNode } from 'react'
import { useState } from 'react'

import type { WaitingDecision } from '../../client/api/decision-outbox.ts'
import { useAdkLabels } from '../provider.tsx'
import type { Approval } from '../reading/approval.ts'
import { isPending } from '../reading/approval.ts'
import { type Call, getToolName } from '../reading/call.ts'
import { toLiteral } from '../reading/literal-text.ts'
import type { ServerError } from '../reading/problem.ts'
import { RefusalNote } from './approval-form.tsx'
import { describeWaiting } from './call-labels.ts'
import { CancelDecision } from './cancel-decision.tsx'
import { Countdown } from './countdown.tsx'

interface QuestionFrameProps {
  readonly className: string
  readonly call: Call
  readonly approval: Approval
  readonly refusal: ServerError | undefined
  readonly title: string
  readonly label: string
  /** The state of the question, for screen readers while it is pending and for everybody afterwards. */
  readonly status: string
  /** The answer, if it waits for the connection. */
  readonly waitingDecision: WaitingDecision | undefined
  /** Takes back an answer that waits for the connection. */
  readonly onCancelDecision: (() => boolean) | undefined
  /** Shown next to the status when the question is decided. */
  readonly decidedBy?: ReactNode
  /** Shown below the status when the question is decided. */
  readonly details?: ReactNode
  readonly children: ReactNode
}

/** The parts of a card that all questions have: title, countdown, refusal and status. */
export function QuestionFrame(props: QuestionFrameProps) {
  const { call, approval, title, decidedBy, details, waitingDecision: waiting } = props
  const labels = useAdkLabels()
  const [isOverdue, setOverdue] = useState(false)
  const pending = isPending(call, approval)
  const { state, deadline } = approval
  const ending = pending && isOverdue ? labels.approval.deadlinePassed : props.status
  const status = waiting
    ? toLiteral(describeWaiting(waiting, { labels, isQuestion: true }))
    : ending
  return (
    <div
      className={`adk-tool adk-approval ${props.className}`}
      role="group"
      data-state={call.state}
      data-ending={state}
      data-phase={pending ? 'pending' : 'ended'}
      data-approval={approval.approvalId}
      data-tool={getToolName(call)}
      data-tool-call={call.toolCallId}
      aria-label={props.label}
      // Focusable by script, and not by the Tab key.
      tabIndex={-1}
    >
      <header className="adk-tool-header">
        <span className="adk-dot" aria-hidden="true" />
        <span className="adk-title">{title}</span>
        {pending && deadline !== undefined && (
          <Countdown deadline={deadline} onOverdue={setOverdue} />
        )}
      </header>
      {props.children}
      <RefusalNote refusal={props.refusal} />
      <div className="adk-ending">
        <p
          className={pending && !isOverdue && !waiting ? 'adk-hidden' : 'adk-status'}
          role="status"
        >
          {status}
        </p>
        {!pending && decidedBy}
      </div>
      <CancelDecision {...props} isWaiting={waiting?.mayHaveArrived === false} />
      {!pending && details}
    </div>
  )
}
