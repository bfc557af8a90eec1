import {
  APPROVAL_UNAVAILABLE,
  describeEnding,
  describeRefusedRequest,
  markFailed,
  toApprovedNote,
} from '../agent/call-responses.ts'
import type { DecidedNote } from '../agent/events/event-notes.ts'
import type { Approval, Refusal } from '../approvals/approval.ts'
import { isRefusal } from '../approvals/approval.ts'
import type { DecidedCall } from '../approvals/ledger.ts'
import type { ResolvedTerms } from '../approvals/policy.ts'
import type { OutputResponse } from '../protocol/read-responses.ts'
import type { CallCheck } from './call-kind.ts'
import type { Pause } from './run-state.ts'

/**
 * The state of a tool call in this process. `nextCall` is the lifecycle of a call. A live session feeds it events and performs
 * its effects; over SSE, ADK keeps the call, and the plugin follows the first effect. Only the ledger says whether a call may run.
 */
export type CallState = CallStage & {
  /** Whether the model cancelled the call. It receives no result. Only live models cancel calls. */
  readonly isCancelled?: boolean
}

type CallStage =
  /** The policy is about to decide whether the call needs approval. */
  | { readonly name: 'new' }
  /** The approval is being stored and shown. */
  | { readonly name: 'requested' }
  /** People are asked. */
  | { readonly name: 'asked'; readonly approvalId: string }
  /** This process records a decision, and claims the call if the decision completes the approval. */
  | { readonly name: 'deciding'; readonly approvalId: string }
  /** The call is being claimed. `reports`: this process reports the outcome, even if another one ran the call. */
  | {
      readonly name: 'approved'
      readonly approvalId: string
      readonly reports: boolean
      readonly output?: OutputResponse
    }
  /** The tool runs. `output` arrived before the call was handed over to the client. */
  | { readonly name: 'running'; readonly approval?: Approval; readonly output?: OutputResponse }
  /** The client or the application completes the call. `isWaiting` is false while the handover is being stored. */
  | {
      readonly name: 'delivered'
      readonly isWaiting: boolean
      readonly note?: DecidedNote
      readonly output?: OutputResponse
    }
  /** Calls inside the agent that the call runs wait for approval. `isWaiting` is false while the pause is being stored. */
  | { readonly name: 'paused'; readonly isWaiting: boolean }
  /** The response is known and is being stored. */
  | { readonly name: 'settled' }
  /** Another process runs the call or reports its outcome. */
  | { readonly name: 'left' }

export type CallEvent =
  /** `canWait`: ADK can wait for an approval here. */
  | { readonly type: 'checked'; readonly check: CallCheck; readonly canWait: boolean }
  | { readonly type: 'request-stored'; readonly approval: Approval }
  | { readonly type: 'request-refused'; readonly refusal: Refusal }
  /** The conversation contains the request. */
  | { readonly type: 'request-shown'; readonly approvalId: string }
  /** The approval changed, in this process or in another one. */
  | { readonly type: 'approval-changed'; readonly approval: Approval }
  /** ADK resumes the call under the chat lock, so this process reports its outcome. `handsOver`: its result comes from outside if the tool returns nothing. */
  | { readonly type: 'resumed'; readonly approval: Approval; readonly handsOver: boolean }
  /** This process is about to record a decision. */
  | { readonly type: 'decision-received'; readonly approvalId: string }
  /** The result of recording the decision. Undefined if that failed. */
  | { readonly type: 'decided'; readonly result: DecidedCall | Refusal | undefined }
  | { readonly type: 'claimed'; readonly approval: Approval }
  /** `approval` is the approval as stored. Undefined if it no longer exists. */
  | {
      readonly type: 'claim-refused'
      readonly approval: Approval | undefined
      readonly handsOver?: boolean
    }
  | ({ readonly type: 'ran' } & RunResult)
  /** The conversation contains the pause. */
  | { readonly type: 'pause-shown' }
  /** A call inside was decided or has expired, so that the agent can continue. */
  | { readonly type: 'inside-decided' }
  /** The calls inside were cancelled, so that the agent cannot continue. */
  | { readonly type: 'inside-cancelled' }
  /** The client knows that it has to complete the call. */
  | { readonly type: 'handed-over' }
  | { readonly type: 'output-received'; readonly output: OutputResponse }
  /** The model no longer wants the result. */
  | { readonly type: 'cancelled' }
  /** The work on the call threw. */
  | { readonly type: 'failed' }
  /** The work on the call threw, because the store cannot be reached at the moment. */
  | { readonly type: 'store-failed' }

interface RunResult {
  readonly response: Record<string, unknown>
  /** Whether the ledger has the outcome. False if another process has settled the call. */
  readonly isRecorded: boolean
  /** The approval with the recorded outcome, if the call needed one. */
  readonly ended?: Approval | undefined
  /** The terms of an approval that the tool requested itself while it ran. `unavailable`: ADK cannot wait for it here. */
  readonly question?: ResolvedTerms | 'unavailable' | undefined
  /** What the call waits for, if it runs an agent in which calls need approval, or has asked a follow-up. `decided`: the note on its approval. */
  readonly pause?: (Pause & { readonly decided?: DecidedNote }) | undefined
  /** The note on a call that ran after the answer to its follow-up. */
  readonly answered?: DecidedNote | undefined
  /** Whether the tool returned no result, because the client or the application completes the call. */
  readonly isOpen: boolean
}

export type CallEffect =
  /** Store an approval request, then show it to the client. */
  | { readonly type: 'request'; readonly terms: ResolvedTerms }
  | { readonly type: 'show'; readonly approval: Approval }
  /** Read the approval again, as soon as the store works: it may have changed while its events were ignored. */
  | { readonly type: 'read'; readonly approvalId: string }
  | { readonly type: 'claim'; readonly approvalId: string }
  /** Run the tool. `approval` is the claimed approval, if the call needed one. */
  | { readonly type: 'run'; readonly approval?: Approval }
  | { readonly type: 'hand-over'; readonly note: DecidedNote | undefined }
  /** Store that the call waits for approvals inside its agent. `note`: how its own approval ended. */
  | { readonly type: 'pause'; readonly pause: Pause; readonly note: DecidedNote | undefined }
  /** Read the approvals inside: they may have changed while their events were ignored. */
  | { readonly type: 'read-inside' }
  /** Cancel the approvals inside in the ledger. Earlier decisions win. */
  | { readonly type: 'withdraw-inside' }
  /** Settle the call and the calls inside, which were cancelled. */
  | { readonly type: 'end-inside' }
  /** Settle the call with the output of the client. */
  | { readonly type: 'settle-with-output'; readonly output: OutputResponse }
  /** Store the response of the call and send it to the model. */
  | {
      readonly type: 'settle'
      readonly response: Record<string, unknown>
      readonly note?: DecidedNote | undefined
    }
  /** Cancel the approval in the ledger. An earlier decision wins. */
  | { readonly type: 'withdraw'; readonly approvalId: string }
  /** Forget the call: another process stores and streams its result. */
  | { readonly type: 'leave' }
  /** End the run: another process has settled a call that ran here. */
  | { readonly type: 'lose' }
  /** Settle the call as the ledger knows it. */
  | { readonly type: 'recover' }

type Next = readonly [CallState, readonly CallEffect[]]

/** Why the model receives no result of a call that it cancelled. */
export const CANCELLED_BY_MODEL = 'the conversation went on without it'
const CANCELLED = { status: 'cancelled', error: `Cancelled: ${CANCELLED_BY_MODEL}.` } as const

/** Returns the state of a call after an event, and the effects to run. Returns the same state if the event changes nothing. */
export function nextCall(state: CallState, event: CallEvent): Next {
  switch (event.type) {
    case 'checked':
      return receiveCheck(state, event.check, event.canWait)
    case 'request-stored':
      return takeRequest(state, event.approval)
    case 'request-refused':
      return settle(state, describeRefusedRequest(event.refusal))
    case 'request-shown':
      return ask(state, event.approvalId)
    case 'approval-changed':
      return state.name === 'asked' && state.approvalId === event.approval.id
        ? takeApproval(state, event.approval)
        : [state, []]
    case 'resumed':
      return takeApproval(state, event.approval, { handsOver: event.handsOver })
    case 'decision-received':
      return state.name === 'asked' && state.approvalId === event.approvalId
        ? [to(state, { name: 'deciding', approvalId: state.approvalId }), []]
        : [state, []]
    case 'decided':
      return state.name === 'deciding' ? takeDecision(state, event.result) : [state, []]
    case 'claimed':
      return run(state, event.approval)
    case 'claim-refused':
      return refuseClaim(state, event)
    case 'ran':
      return takeResult(state, event)
    case 'pause-shown':
      return pause(state)
    case 'inside-decided':
      return state.name === 'paused' && state.isWaiting ? run(state) : [state, []]
    case 'inside-cancelled':
      return state.name === 'paused' && state.isWaiting
        ? [to(state, { name: 'settled' }), [{ type: 'end-inside' }]]
        : [state, []]
    case 'handed-over':
      return handOver(state)
    case 'output-received':
      return takeOutput(state, event.output)
    case 'cancelled':
      return cancel(state)
    case 'failed':
      return recover(state)
    case 'store-failed':
      return waitForStore(state)
  }
}

function recover(state: CallState): Next {
  return [to(state, { name: 'settled' }), [{ type: 'recover' }]]
}

/** A call that has not started still waits. */
function waitForStore(state: CallState): Next {
  if (state.name !== 'asked' && (state.name !== 'approved' || state.output)) return recover(state)
  const { approvalId } = state
  return [to(state, { name: 'asked', approvalId }), [{ type: 'read', approvalId }]]
}

function receiveCheck(state: CallState, check: CallCheck, canWait: boolean): Next {
  if (state.isCancelled) return settle(state, CANCELLED)
  switch (check.verdict) {
    case 'refuse':
      return settle(state, check.response)
    case 'ask':
      return canWait ? request(state, check.terms) : settle(state, APPROVAL_UNAVAILABLE)
    case 'run':
      return run(state)
  }
}

function request(state: CallState, terms: ResolvedTerms): Next {
  return [to(state, { name: 'requested' }), [{ type: 'request', terms }]]
}

/** Shows a request, or continues a call that an earlier decision decided when it was requested. */
function takeRequest(state: CallState, approval: Approval): Next {
  if (approval.state.name === 'requested') return [state, [{ type: 'show', approval }]]
  return approval.state.name === 'executing'
    ? run(state, approval)
    : settleUnrun(state, approval, { handsOver: false })
}

/** Waits for a decision. The approval may have changed before the call was in this state. */
function ask(state: CallState, approvalId: string): Next {
  const withdraw = { type: 'withdraw', approvalId } as const
  const read = { type: 'read', approvalId } as const
  return [to(state, { name: 'asked', approvalId }), state.isCancelled ? [withdraw, read] : [read]]
}

/** How this process reports the outcome of a call, even if another one ran it. */
interface Report {
  /** Whether the result comes from the client or the application if the tool returns nothing. */
  readonly handsOver: boolean
}

/** Continues a call as its approval says. */
function takeApproval(state: CallState, approval: Approval, report?: Report): Next {
  const { id: approvalId, state: known } = approval
  if (known.name === 'approved') {
    const approved = { name: 'approved', approvalId, reports: report !== undefined } as const
    return [to(state, approved), [{ type: 'claim', approvalId }]]
  }
  if (known.name === 'requested' && !report) return [state, []]
  return settleUnrun(state, approval, report)
}

/** Settles a call that does not run here with the outcome that the ledger has, or leaves it to the process that runs it. */
function settleUnrun(state: CallState, approval: Approval, report: Report | undefined): Next {
  // BT1580: the approval of such a call ends when the call is handed over.
  const { state: known } = approval
  if (report?.handsOver && known.name === 'succeeded' && known.output === null)
    return deliver(state, toApprovedNote(approval))
  const ran = approval.state.name === 'succeeded' || approval.state.name === 'failed'
  const ending = ran && !report ? undefined : describeEnding(approval)
  return ending
    ? settle(state, ending.response, ending.note)
    : [to(state, { name: 'left' }), [{ type: 'leave' }]]
}

function takeDecision(
  state: CallState & { readonly name: 'deciding' },
  result: DecidedCall | Refusal | undefined,
): Next {
  // The decision changed nothing, or further people have to decide.
  if (!result || isRefusal(result) || result.decided.state.name === 'requested')
    return ask(state, state.approvalId)
  return result.claimed ? run(state, result.claimed) : takeApproval(state, result.decided)
}

function run(state: CallState, approval?: Approval): Next {
  const claimed = approval && { approval }
  const kept = state.name === 'approved' && state.output && { output: state.output }
  return [to(state, { name: 'running', ...claimed, ...kept }), [{ type: 'run', ...claimed }]]
}

function refuseClaim(
  state: CallState,
  { approval, handsOver = false }: CallEvent & { readonly type: 'claim-refused' },
): Next {
  const reports = state.name === 'approved' && state.reports
  if (approval) return settleUnrun(state, approval, reports ? { handsOver } : undefined)
  return reports
    ? settle(state, APPROVAL_UNAVAILABLE)
    : [to(state, { name: 'left' }), [{ type: 'leave' }]]
}

function takeResult(state: CallState, result: RunResult): Next {
  const { response, isRecorded, question, isOpen, ended, answered } = result
  // The ledger has another outcome. The process that recorded it reports it to the model and to clients.
  if (!isRecorded) return [to(state, { name: 'left' }), [{ type: 'lose' }]]
  if (result.pause) {
    const note = result.pause.decided ?? noteOf(state, ended)
    const paused = { name: 'paused', isWaiting: false } as const
    return [to(state, paused), [{ type: 'pause', pause: result.pause, note }]]
  }
  if (question === 'unavailable') return settle(state, APPROVAL_UNAVAILABLE)
  if (question) return request(state, question)
  // A call that is handed over has no outcome yet.
  if (isOpen) return deliver(state, answered ?? noteOf(state))
  const note = answered ?? noteOf(state, ended)
  return settle(state, note?.outcome === 'failed' ? markFailed(response) : response, note)
}

/** Returns the note on the approval of a call that runs, if it needed one. `ended` is the approval with the outcome. */
function noteOf(state: CallState, ended?: Approval): DecidedNote | undefined {
  const approval = state.name === 'running' ? state.approval : undefined
  return approval && toApprovedNote(ended ?? approval)
}

/** Leaves a call to the client or to the application. */
function deliver(state: CallState, note: DecidedNote | undefined): Next {
  const output = state.name === 'running' && state.output && { output: state.output }
  const delivered = {
    name: 'delivered',
    isWaiting: false,
    ...(note && { note }),
    ...output,
  } as const
  return [to(state, delivered), [{ type: 'hand-over', note }]]
}

/** Waits for decisions inside. They may have been made before the call was in this state. */
function pause(state: CallState): Next {
  if (state.name !== 'paused') return [state, []]
  const read = { type: 'read-inside' } as const
  const paused = { ...state, isWaiting: true }
  return [paused, state.isCancelled ? [{ type: 'withdraw-inside' }, read] : [read]]
}

function handOver(state: CallState): Next {
  if (state.name !== 'delivered') return [state, []]
  if (state.isCancelled) return settle(state, CANCELLED)
  return state.output ? settleWithOutput(state, state.output) : [{ ...state, isWaiting: true }, []]
}

/**
 * Takes the output of a client. It is kept until the handover if it arrives before: a client may send it together with its approval (BT6),
 * and has the offer before the handover is stored.
 */
function takeOutput(state: CallState, output: OutputResponse): Next {
  if (state.name === 'delivered' && state.isWaiting) return settleWithOutput(state, output)
  const isExpected =
    state.name === 'approved' ||
    state.name === 'delivered' ||
    (state.name === 'running' && state.approval)
  return isExpected && !state.output ? [{ ...state, output }, []] : [state, []]
}

function settleWithOutput(state: CallState, output: OutputResponse): Next {
  return [to(state, { name: 'settled' }), [{ type: 'settle-with-output', output }]]
}

/** A call that waits is withdrawn. A call that runs may finish, and its result is stored. */
function cancel(state: CallState): Next {
  const cancelled = { ...state, isCancelled: true }
  if (state.name === 'delivered' && state.isWaiting) return settle(cancelled, CANCELLED)
  if (state.name === 'paused' && state.isWaiting)
    return [cancelled, [{ type: 'withdraw-inside' }, { type: 'read-inside' }]]
  return state.name === 'asked'
    ? [cancelled, [{ type: 'withdraw', approvalId: state.approvalId }]]
    : [cancelled, []]
}

function settle(state: CallState, response: Record<string, unknown>, note?: DecidedNote): Next {
  return [to(state, { name: 'settled' }), [{ type: 'settle', response, note }]]
}

function to({ isCancelled = false }: CallState, stage: CallStage): CallState {
  return isCancelled ? { ...stage, isCancelled } : stage
}
