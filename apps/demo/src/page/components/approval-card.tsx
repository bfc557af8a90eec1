import { useRef, useState } from 'react'

import { type Approval, Arguments, type Call } from '../chat/approval.ts'
import { describeCall } from '../chat/describe-call.ts'
import { useTexts } from '../i18n/language.tsx'
import type { Texts } from '../i18n/texts.ts'
import { ApprovalDecision, type ApprovalDecisionProps } from './approval-decision.tsx'
import { ArgumentsTable } from './arguments-table.tsx'
import { Countdown } from './countdown.tsx'
import { SeverityMark } from './severity-mark.tsx'
import { CallDetails, describeState } from './tool-card.tsx'

interface ApprovalCardProps {
  readonly name: string
  readonly call: Call
  readonly approval: Approval
}

/** A call that a person decides: what it would do, the decision, and what came of it. */
export function ApprovalCard({ name, call, approval }: ApprovalCardProps) {
  const texts = useTexts()
  const [over, setOver] = useState(false)
  const statusRef = useRef<HTMLParagraphElement>(null)
  const pending = isPending(call, approval)
  const args = Arguments.safeParse(call.input).data ?? {}
  const deed = describeCall(name, approval.editedArgs ?? args, texts)
  return (
    <div
      className="tool approval"
      role="group"
      data-state={call.state}
      data-ending={approval.state}
      aria-label={`${name}: ${deed}`}
    >
      <CardHeader name={name} call={call} approval={approval} onOver={() => setOver(true)} />
      <p className="approval-deed">{deed}</p>
      {pending && approval.hint && <p className="approval-hint">{approval.hint}</p>}
      {approval.editedArgs && <ArgumentsTable args={args} edited={approval.editedArgs} />}
      <ApprovalDecision
        approval={approval}
        args={args}
        state={decisionState(pending, over)}
        onDecided={() => statusRef.current?.focus()}
      />
      {/* To those who see, the buttons say that it waits. */}
      <p
        className={pending && !over ? 'visually-hidden' : 'approval-status'}
        role="status"
        tabIndex={-1}
        ref={statusRef}
      >
        {describeStatus(call, approval, { texts, over })}
      </p>
      {call.state === 'output-error' && approval.state === 'approved' && (
        <p className="tool-failure">{call.errorText}</p>
      )}
      {!pending && <CallDetails call={call} />}
    </div>
  )
}

interface CardHeaderProps extends ApprovalCardProps {
  readonly onOver: () => void
}

function CardHeader({ name, call, approval, onOver }: CardHeaderProps) {
  const texts = useTexts()
  const { title = name, severity, deadline } = approval
  const pending = isPending(call, approval)
  return (
    <header className="tool-header">
      <span className="tool-dot" aria-hidden="true" />
      <span className="approval-title">{title}</span>
      {pending && <SeverityMark severity={severity} />}
      {pending && deadline !== undefined ? (
        <Countdown deadline={deadline} onOver={onOver} />
      ) : (
        <span className="tool-state">{nameState(call, approval, texts)}</span>
      )}
    </header>
  )
}

/** Whether the call waits for a decision; it may have been made where this message did not hear of it. */
function isPending(call: Call, { state }: Approval): boolean {
  return call.state === 'approval-requested' && state === 'requested'
}

function decisionState(pending: boolean, over: boolean): ApprovalDecisionProps['state'] {
  if (!pending) return 'decided'
  return over ? 'over' : 'open'
}

function nameState(call: Call, { state }: Approval, texts: Texts): string {
  const ended = state !== 'requested' && state !== 'approved'
  return ended ? texts.approval.states[state] : describeState(call.state, texts)
}

function describeStatus(
  call: Call,
  { state, reason }: Approval,
  { texts: { approval }, over }: { texts: Texts; over: boolean },
): string {
  switch (state) {
    case 'requested':
      if (call.state === 'approval-requested') return over ? approval.over : approval.waiting
      return call.state === 'approval-responded' && !call.approval.approved
        ? approval.denying
        : approval.running
    case 'approved':
      return approval.endings.approved
    case 'denied':
    case 'cancelled':
      return reason ? approval.because(approval.endings[state], reason) : approval.endings[state]
    case 'expired':
    case 'unknown':
      return approval.endings[state]
  }
}
