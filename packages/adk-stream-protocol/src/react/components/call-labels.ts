import type { WaitingDecision } from '../../client/api/decision-outbox.ts'
import type { AdkLabels } from '../labels/labels.ts'
import type { Approval } from '../reading/approval.ts'
import { type Call, type CallPhase, isUnfinished, readFailure } from '../reading/call.ts'

/** Returns the state of a call in one or two words. */
export function describeCallState(
  call: Call,
  { tool }: AdkLabels,
  outcome?: Approval['outcome'],
): string {
  if (readFailure(call, outcome)) return tool.failed
  switch (call.state) {
    case 'input-streaming':
      return tool.preparing
    case 'input-available':
    case 'approval-responded':
      return tool.running
    case 'approval-requested':
      return tool.waiting
    case 'output-available':
      return isUnfinished(call) ? tool.running : tool.done
    case 'output-error':
      return tool.failed
    case 'output-denied':
      return tool.denied
  }
}

/** Returns the state of a call that needs approval, in one or two words. */
export function describeApprovalState(
  call: Call,
  { state, outcome }: Approval,
  labels: AdkLabels,
): string {
  const hasEnded = state !== 'requested' && state !== 'approved'
  return hasEnded ? labels.approval.states[state] : describeCallState(call, labels, outcome)
}

/** Returns how far a call that needs approval has come. */
export function readPhase(call: Call, { state, outcome }: Approval): CallPhase {
  if (state !== 'requested' && state !== 'approved') return state
  if (call.state !== 'output-available' && call.state !== 'output-error') return 'pending'
  if (isUnfinished(call)) return 'pending'
  return readFailure(call, outcome) ? 'failed' : 'succeeded'
}

interface StatusOptions {
  readonly labels: AdkLabels
  /** Whether the deadline has passed by the local clock. */
  readonly isOverdue: boolean
  /** Whether the server refused the last decision. */
  readonly isRefused: boolean
  /** Whether the person has already voted on an approval that needs several people. */
  readonly hasVoted: boolean
  readonly delivery: Delivery
}

/** How far a decision has come on its way to the server. `confirmed` if the transport does not report it. */
export type Delivery = 'waiting-for-connection' | 'sending' | 'confirmed'

/** Returns the status of an approval as a sentence. Screen readers announce it when it changes. */
export function describeApprovalStatus(
  call: Call,
  { state, reason, outcome }: Approval,
  { labels: { approval }, isOverdue, isRefused, hasVoted, delivery }: StatusOptions,
): string {
  switch (state) {
    case 'requested':
      if (call.state === 'approval-requested' && hasVoted) return approval.waitingForOthers
      if (call.state === 'approval-requested')
        return isOverdue ? approval.deadlinePassed : approval.waiting
      if (call.state === 'approval-responded' && isRefused) return approval.refused
      if (call.state === 'approval-responded' && delivery !== 'confirmed')
        return delivery === 'sending' ? approval.sending : approval.waitingForConnection
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

/** Says that a decision waits for the connection. */
export function describeWaiting(
  { decision: { approved, reason }, mayHaveArrived }: WaitingDecision,
  { labels: { approval }, isQuestion }: { labels: AdkLabels; isQuestion: boolean },
): string {
  const given = approved ? 'approval' : 'denial'
  const sentence = approval.waitingDecision(isQuestion ? 'answer' : given, mayHaveArrived)
  return reason === undefined ? sentence : approval.withReason(sentence, reason)
}

/** Joins the strings and numbers of the arguments to one line. */
export function summarise(input: unknown): string {
  if (typeof input !== 'object' || input === null) return ''
  const values = Object.values(input).filter(
    (value) => typeof value === 'number' || (typeof value === 'string' && value !== ''),
  )
  return values.join(', ')
}
