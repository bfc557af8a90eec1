import { useLayoutEffect, useRef, useState } from 'react'

import { useAdkTexts, useDeed } from '../provider.tsx'
import type { Approval, Decision, Votes } from '../reading/approval.ts'
import { isPending } from '../reading/approval.ts'
import { toLiteral } from '../reading/literal-text.ts'
import { argumentsOf, type Call, nameCall, readFailure } from '../reading/call.ts'
import type { ToldError } from '../reading/problem.ts'
import { ApprovalDecision } from './approval-decision.tsx'
import { type Delivery, describeStatus, nameState } from './approval-words.ts'
import { ArgumentsTable } from './arguments-table.tsx'
import { CallDetails } from './call-details.tsx'
import { Countdown } from './countdown.tsx'
import { LiteralText } from './literal-text.tsx'
import { SeverityMark } from './severity-mark.tsx'
import { useApprovalKeys } from './use-approval-keys.ts'

/** A call that waits for a decision, or how it ended. */
export interface ApprovalCardProps {
  readonly call: Call
  readonly approval: Approval
  readonly onDecide: (decision: Decision) => void
  /** Why the last decision was not accepted. */
  readonly refusal?: ToldError | undefined
  /** How far it has come, where several people must approve. */
  readonly votes?: Votes | undefined
  /** Whether the server has the reader's decision. Default `confirmed`. */
  readonly delivery?: Delivery | undefined
}

/** A call that a person decides: what it would do, the decision, and what came of it. */
export function ApprovalCard(props: ApprovalCardProps) {
  const { call, approval, onDecide, refusal, votes, delivery = 'confirmed' } = props
  const texts = useAdkTexts()
  const [over, setOver] = useState(false)
  const cardRef = useApprovalKeys<HTMLDivElement>()
  const pending = isPending(call, approval)
  const voted = votes?.voted === true
  const statusRef = useFocusAfter(pending && !voted)
  const args = argumentsOf(call)
  const name = nameCall(call)
  const deed = useDeed(name, approval.editedArgs ?? args)
  const words = { texts, over, refused: refusal !== undefined, voted, delivery }
  return (
    <div
      ref={cardRef}
      className="adk-tool adk-approval"
      role="group"
      data-state={call.state}
      data-ending={approval.state}
      data-approval={approval.approvalId}
      data-failed={readFailure(call) !== undefined}
      aria-label={`${name}: ${toLiteral(deed)}`}
      // Not a stop of its own, but a place where a page can put the focus.
      tabIndex={-1}
    >
      <CardHeader call={call} approval={approval} onOver={setOver} />
      <p className="adk-deed">
        <LiteralText text={deed} />
      </p>
      {pending && approval.hint && (
        <p className="adk-hint">
          <LiteralText text={approval.hint} />
        </p>
      )}
      {approval.editedArgs && <ArgumentsTable args={args} edited={approval.editedArgs} />}
      <ApprovalDecision
        {...{ approval, args, votes, refusal, onDecide }}
        state={pending ? 'open' : 'closed'}
      />
      {/* To those who see, the buttons say that it waits. They stay when the time is over: a clock may be wrong, and the server refuses. */}
      <p
        className={pending && !over ? 'adk-hidden' : 'adk-status'}
        role="status"
        tabIndex={-1}
        ref={statusRef}
      >
        {toLiteral(describeStatus(call, approval, words))}
      </p>
      {!pending && <Outcome call={call} approval={approval} />}
    </div>
  )
}

function Outcome({ call, approval }: Pick<ApprovalCardProps, 'call' | 'approval'>) {
  const failure = approval.state === 'approved' ? readFailure(call) : undefined
  return (
    <>
      {failure?.reason && (
        <p className="adk-failure">
          <LiteralText text={failure.reason} />
        </p>
      )}
      <CallDetails call={call} />
    </>
  )
}

/** The buttons go away, with the focus if they have it: who used them goes on where it is said what follows. */
function useFocusAfter(canChoose: boolean) {
  const statusRef = useRef<HTMLParagraphElement>(null)
  useLayoutEffect(() => {
    const status = statusRef.current
    if (!canChoose && status?.parentElement?.contains(document.activeElement)) status.focus()
  }, [canChoose])
  return statusRef
}

interface CardHeaderProps {
  readonly call: Call
  readonly approval: Approval
  readonly onOver: (over: boolean) => void
}

function CardHeader({ call, approval, onOver }: CardHeaderProps) {
  const texts = useAdkTexts()
  const { title = nameCall(call), severity, deadline } = approval
  const pending = isPending(call, approval)
  return (
    <header className="adk-tool-header">
      <span className="adk-dot" aria-hidden="true" />
      <span className="adk-title">{title}</span>
      {pending && <SeverityMark severity={severity} />}
      {pending && deadline !== undefined ? (
        <Countdown deadline={deadline} onOver={onOver} />
      ) : (
        <span className="adk-tool-state">{nameState(call, approval, texts)}</span>
      )}
    </header>
  )
}
