import type { Preview, ShownPreview } from '../protocol/preview.ts'
import type { Approval, MovedFields, ApprovalState, ApprovalTerms, Vote } from './approval.ts'
import { isRefusal, type Refusal } from './approval.ts'
import type { AuditEntry, AuditEvent, DecisionEvent } from './audit-entry.ts'
import type { Decider, Voter } from './deciders.ts'
import {
  currentStep,
  hasVoted,
  isAsked,
  isCounted,
  isDecidedByOne,
  isEligible,
  maySee,
} from './deciders.ts'
import { digestCall } from './digest.ts'
import type { FeatureWrite } from './feature-parts.ts'
import { pickEvidence } from '../protocol/decision-evidence.ts'

export interface Decision {
  readonly by: Decider
  readonly approved: boolean
  readonly reason?: string
  /** The arguments to run instead of those shown. They have been validated against the schema of the tool. */
  readonly editedArgs?: Readonly<Record<string, unknown>>
  /** The response to the payload of the tool. */
  readonly payload?: unknown
  /** The preview that the person saw. It has been compared with the current one. */
  readonly preview?: ShownPreview
  /** Whether the server answers. It sets this when it has what the question asks for. */
  readonly byServer?: true
  /** How the person decides, if not in a form. */
  readonly means?: DecisionMeans
}

/**
 * A way to decide besides a form and credentials of one's own, such as a message in the chat. Returns what it adds to the decision, or why
 * this approval cannot be decided in this way. Has no effects: the ledger calls it again if another transition came first.
 */
export type DecisionMeans = (
  approval: Approval,
  decision: Decision,
  now: number,
) => UsedMeans | Refusal

interface UsedMeans extends Omit<DecisionEvent, 'by' | 'step' | 'reason'> {
  /** For whom the decision counts, besides the person who decides. */
  readonly voter?: Omit<Voter, 'principalId'>
  /** What else changes in the approval. */
  readonly change?: Partial<Omit<MovedFields, 'votes' | 'state' | 'version'>>
  /** What else is stored in the same transaction. */
  readonly writes?: FeatureWrite
}

/** A decision in a chat that was refused, with the code of its error. */
interface RefusedDecision {
  readonly by: Decider
  readonly code: string
}

/** A change of an approval beside its state and its votes, or why it is refused. The ledger calls it again if another transition came first. */
export type NextNote = (approval: Approval, now: number) => Transition | Refusal

export type ApprovalCommand =
  | { readonly type: 'note'; readonly next: NextNote }
  | ({ readonly type: 'decide' } & Decision)
  | { readonly type: 'withdraw'; readonly by: Decider }
  | { readonly type: 'expire' }
  | { readonly type: 'cancel'; readonly reason: string }
  | {
      readonly type: 'claim'
      readonly toolCallId: string
      readonly toolName: string
      readonly digest: string
      readonly worker: string
    }
  | ({ readonly type: 'succeed'; readonly worker: string } & Success)
  | ({ readonly type: 'fail'; readonly worker: string } & Failure)
  /** `leaseMs`: only if the worker has not renewed its lease for that time. `isUnstarted`: the worker has not started the call. */
  | {
      readonly type: 'lose'
      readonly worker: string
      readonly leaseMs?: number
      readonly isUnstarted?: boolean
    }

/** The outcome of a call that succeeded. */
interface Success {
  readonly output: unknown
  readonly receipt?: Preview
}

/** The outcome of a call that failed: the tool threw, or returned the `output`, which reports a failure. */
export interface Failure {
  readonly error: string
  readonly output?: unknown
  readonly receipt?: Preview
}

/** A change of an approval with its audit entry, and the conditions under which it may be stored. */
export interface Transition {
  readonly next: Approval
  readonly entry: AuditEntry
  /** Store the transition only before this time, by the clock of the store. */
  readonly before?: number
  /** Store the transition only if this worker has not renewed its lease for `leaseMs`. */
  readonly silent?: { readonly worker: string; readonly leaseMs: number }
  /** What a feature stores in the same transaction. Nothing is stored if this cannot be. */
  readonly writes?: FeatureWrite
}

/** Returns the transition that a command causes at a time of the store's clock, or the reason why it changes nothing. */
export function nextApproval(
  approval: Approval,
  command: ApprovalCommand,
  now: number,
): Transition | Refusal {
  const result = advance(approval, command, now)
  if (isRefusal(result) || (command.type !== 'decide' && command.type !== 'claim')) return result
  return isIntact(approval) ? result : { refused: 'mismatch' }
}

/** A command, and the command to execute with it if the first one makes the approval `approved`. */
export type Commands = readonly [ApprovalCommand, ApprovalCommand?]
export type Transitions = readonly [Transition, ...Transition[]]

/** Returns the transitions that commands cause, to be stored in one commit, or the reason why the first one changes nothing. */
export function nextApprovals(
  approval: Approval,
  [command, following]: Commands,
  now: number,
): Transitions | Refusal {
  const first = nextApproval(approval, command, now)
  if (isRefusal(first)) return first
  if (!following || first.next.state.name !== 'approved') return [first]
  // The first command has checked that the approval is intact.
  const second = advance(first.next, following, now)
  return isRefusal(second) ? [first] : [first, second]
}

function advance(approval: Approval, command: ApprovalCommand, now: number): Transition | Refusal {
  switch (command.type) {
    case 'decide':
      return decide(approval, command, now)
    case 'note':
      return command.next(approval, now)
    case 'withdraw':
      return withdraw(approval, command.by, now)
    case 'expire':
      return expire(approval, now)
    case 'cancel':
      return cancel(approval, command.reason, now)
    case 'claim':
      return claim(approval, command, now)
    case 'succeed':
    case 'fail':
    case 'lose':
      return finish(approval, command, now)
  }
}

/** Whether the ledger accepts a decision, if it is stored before the deadline. */
export function isAccepted(approval: Approval, decision: Decision): boolean {
  return 'next' in decide(approval, decision, approval.requestedAt)
}

/** Whether a decision completes an approval, if it is stored before the deadline. */
export function isCompletedBy(approval: Approval, decision: Decision): boolean {
  const result = decide(approval, decision, approval.requestedAt)
  return 'next' in result && result.next.state.name === 'approved'
}

/** Returns the arguments to run: the original ones, or the edited ones. */
export function argsToRun({ state, args }: Approval): Readonly<Record<string, unknown>> {
  return editedArgsOf(state) ?? args
}

/**
 * Whether the conversation has to show an outcome: the call was approved or has ended. Pending and running calls have
 * no outcome yet.
 */
export function isUnreported({ state }: Approval): boolean {
  return state.name !== 'requested' && state.name !== 'executing'
}

function decide(approval: Approval, decision: Decision, now: number): Transition | Refusal {
  const refusal = refuseDecision(approval, decision, now)
  if (refusal !== undefined) return refusal
  const { by, approved, reason, preview } = decision
  const step = currentStep(approval)
  // `refuseDecision` only accepts principals who are eligible for a step that needs votes.
  if (step === undefined) return { refused: 'not-allowed' }
  const used = decision.means?.(approval, decision, now) ?? {}
  if (isRefusal(used)) return used
  const { via, gives, change: rest } = used
  const voter = { principalId: by.id, ...used.voter }
  // A denial counts for nobody: whoever may decide can stop the call.
  if (approved && isCounted(approval, voter)) return { refused: 'already-counted' }
  const words = pickEvidence(used)
  const given = reason === undefined ? {} : { reason }
  const why = { ...(via && { via }), ...words, ...(gives && { gives }), ...given }
  const seen = preview === undefined ? {} : { preview }
  const conditions = { before: approval.deadline, ...(used.writes && { writes: used.writes }) }
  if (!approved) {
    const state = { name: 'denied', at: now, by: by.id, ...given, ...words } as const
    const event = { type: 'denied', by: by.id, step, ...why } as const
    return { ...createTransition(approval, { state, ...rest }, { at: now, event }), ...conditions }
  }
  const vote = { ...voter, step, at: now, ...words }
  const votes: readonly Vote[] = [...approval.votes, vote]
  if (currentStep({ ...approval, votes }) !== undefined) {
    const event = { type: 'voted', by: by.id, step, ...why, ...seen } as const
    return { ...createTransition(approval, { votes, ...rest }, { at: now, event }), ...conditions }
  }
  const edit = changesOf(decision)
  const state = { name: 'approved', at: now, ...given, ...edit } as const
  const event = { type: 'approved', by: by.id, step, ...why, ...edit, ...seen } as const
  const change = { state, votes, ...rest }
  return { ...createTransition(approval, change, { at: now, event }), ...conditions }
}

function refuseDecision(approval: Approval, decision: Decision, now: number): Refusal | undefined {
  const { state, terms, deadline } = approval
  const { by } = decision
  if (!maySee(approval, by)) return { refused: 'unknown-approval' }
  if (!terms.chain.some((step) => isEligible(step, by))) return { refused: 'not-allowed' }
  if (state.name !== 'requested') return refuseState(state)
  if (now >= deadline) return { refused: 'expired' }
  if (hasVoted(approval, by)) return { refused: 'already-voted' }
  if (!isAsked(approval, by)) return { refused: 'not-allowed' }
  return decision.approved ? refuseApproved(terms, decision) : undefined
}

/** Refuses the approval of a person who may decide, because of what it contains or lacks. */
function refuseApproved(
  terms: ApprovalTerms,
  { editedArgs, payload, byServer }: Decision,
): Refusal | undefined {
  if (terms.answeredBy === 'server' && !byServer) return { refused: 'answered-by-server' }
  const isQuestion = terms.kind !== undefined
  // The arguments of a question are what the person reads.
  if (isQuestion && editedArgs !== undefined) return { refused: 'not-editable' }
  const isChanged = editedArgs !== undefined || payload !== undefined
  if (isChanged && !isDecidedByOne(terms)) return { refused: 'not-editable' }
  const takesPayload = isQuestion || terms.payload !== undefined
  return payload !== undefined && !takesPayload ? { refused: 'no-payload' } : undefined
}

/** Records that a decision in the chat was refused. Only the first one changes anything. */
export function refuseInChat({ by, code }: RefusedDecision): NextNote {
  return (approval, now) => {
    const { state, refusedInChat, deadline } = approval
    if (!maySee(approval, by)) return { refused: 'unknown-approval' }
    if (state.name !== 'requested' || refusedInChat) return refuseState(state)
    const event = { type: 'decision-refused', by: by.id, code } as const
    const change = { refusedInChat: true } as const
    return { ...createTransition(approval, change, { at: now, event }), before: deadline }
  }
}

/** Withdraws the vote of a principal. Votes of later steps depend on it and are dropped. */
function withdraw(approval: Approval, by: Decider, now: number): Transition | Refusal {
  const { state, votes, deadline } = approval
  const vote = votes.find(({ principalId }) => principalId === by.id)
  if (!vote && !maySee(approval, by)) return { refused: 'unknown-approval' }
  if (state.name !== 'requested') return refuseState(state)
  if (now >= deadline) return { refused: 'expired' }
  if (!vote) return { refused: 'not-voted' }
  const { step } = vote
  const kept = votes.filter((other) => other !== vote && other.step <= step)
  const dropped = votes.flatMap((other) => (other.step > step ? [other.principalId] : []))
  const event = { type: 'withdrawn', by: by.id, step, dropped } as const
  return { ...createTransition(approval, { votes: kept }, { at: now, event }), before: deadline }
}

function expire(approval: Approval, now: number): Transition | Refusal {
  // Only pending approvals expire. An approved call never does.
  if (approval.state.name !== 'requested') return refuseState(approval.state)
  if (now < approval.deadline) return { refused: 'not-due' }
  const state = { name: 'expired', at: now } as const
  return createTransition(approval, { state }, { at: now, event: { type: 'expired' } })
}

function cancel(approval: Approval, reason: string, now: number): Transition | Refusal {
  const { state } = approval
  if (state.name !== 'requested' && state.name !== 'approved') return refuseState(state)
  const cancelled = { name: 'cancelled', at: now, reason } as const
  const event = { type: 'cancelled', reason } as const
  return createTransition(approval, { state: cancelled }, { at: now, event })
}

function claim(
  approval: Approval,
  call: Extract<ApprovalCommand, { type: 'claim' }>,
  now: number,
): Transition | Refusal {
  const { state, toolCallId, toolName, digest } = approval
  const isSameCall =
    call.toolCallId === toolCallId && call.toolName === toolName && call.digest === digest
  if (!isSameCall) return { refused: 'mismatch' }
  if (state.name !== 'approved') return refuseState(state)
  const { worker } = call
  const executing = { name: 'executing', at: now, worker, ...changesOf(state) } as const
  const { payload } = changesOf(state)
  const event = {
    type: 'started',
    worker,
    args: argsToRun(approval),
    ...(payload !== undefined && { payload }),
  } as const
  return createTransition(approval, { state: executing }, { at: now, event })
}

function finish(
  approval: Approval,
  command: Extract<ApprovalCommand, { type: 'succeed' | 'fail' | 'lose' }>,
  now: number,
): Transition | Refusal {
  const { state, terms } = approval
  if (state.name !== 'executing') return refuseState(state)
  // The lease of this worker has expired, and another worker has taken over the call.
  if (state.worker !== command.worker) return { refused: 'not-approved' }
  const edit = changesOf(state)
  switch (command.type) {
    case 'succeed': {
      const { output, receipt } = command
      const result = { output, ...(receipt && { receipt }) }
      const succeeded = { name: 'succeeded', at: now, ...result, ...edit } as const
      const event = { type: 'succeeded', ...result } as const
      return createTransition(approval, { state: succeeded }, { at: now, event })
    }
    case 'fail': {
      const { error, output, receipt } = command
      const result = { error, ...(output !== undefined && { output }), ...(receipt && { receipt }) }
      const failed = { name: 'failed', at: now, ...result, ...edit } as const
      const event = { type: 'failed', ...result } as const
      return createTransition(approval, { state: failed }, { at: now, event })
    }
    case 'lose': {
      const { worker, leaseMs, isUnstarted = false } = command
      const becomes = terms.idempotent || isUnstarted ? 'approved' : 'unknown'
      const event = { type: 'lost', worker, becomes, ...(isUnstarted && { isUnstarted }) } as const
      const lost = { name: becomes, at: now, ...edit } as const
      const silent = leaseMs === undefined ? {} : { silent: { worker, leaseMs } }
      return { ...createTransition(approval, { state: lost }, { at: now, event }), ...silent }
    }
  }
}

/** Returns the transition that changes some fields of an approval, with its audit entry. */
export function createTransition(
  approval: Approval,
  change: Partial<Omit<MovedFields, 'version'>>,
  { at, event }: { readonly at: number; readonly event: AuditEvent },
): Transition {
  const version = approval.version + 1
  const { id: approvalId, chat } = approval
  return {
    next: { ...approval, ...change, version },
    entry: { approvalId, chat, version, at, event },
  }
}

/** Returns why an approval in this state cannot be changed. */
export function refuseState(state: ApprovalState): Refusal {
  if (state.name === 'expired' || state.name === 'cancelled') return { refused: state.name }
  return state.name === 'requested'
    ? { refused: 'not-approved' }
    : { refused: 'already-decided', state }
}

function isIntact(approval: Approval): boolean {
  return digestCall(approval) === approval.digest
}

/** Returns the changes of the approver: edited arguments and the response to the payload. */
function changesOf(source: object): Changes {
  const { editedArgs, payload }: Changes = source
  return {
    ...(editedArgs !== undefined && { editedArgs }),
    ...(payload !== undefined && { payload }),
  }
}

interface Changes {
  readonly editedArgs?: Readonly<Record<string, unknown>>
  readonly payload?: unknown
}

function editedArgsOf(state: ApprovalState): Readonly<Record<string, unknown>> | undefined {
  return 'editedArgs' in state ? state.editedArgs : undefined
}

/**
 * Returns the transition that cancels an approval at a time of the store's clock, for `ApprovalStore.deleteChat`. Returns
 * undefined if the call runs or has ended.
 */
export function cancelApproval(
  approval: Approval,
  reason: string,
  now: number,
): Transition | undefined {
  const result = nextApproval(approval, { type: 'cancel', reason }, now)
  return isRefusal(result) ? undefined : result
}
