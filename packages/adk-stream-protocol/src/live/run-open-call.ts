import type { Ending } from '../agent/call-responses.ts'
import {
  APPROVAL_UNAVAILABLE,
  ApprovalUnavailableError,
  describeEnding,
  toApprovedNote,
  toResponse,
} from '../agent/call-responses.ts'
import type { DecidedNote } from '../agent/history/event-notes.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import type { Approval } from '../approvals/approval.ts'
import { isRefusal } from '../approvals/approval.ts'
import type { ResolvedTerms } from '../approvals/policy.ts'
import { confirmCall, recordOutcome, withEditedArgs, withEdits } from '../calls/approved-call.ts'
import { asBrowserTool } from '../calls/browser-tool.ts'
import type { ToolQuestion } from '../calls/call-terms.ts'
import { confirmUnasked, resolveQuestionTerms } from '../calls/call-terms.ts'
import type { LateSignIn } from '../calls/late-sign-ins.ts'
import {
  findLateSignIn,
  pauseForSignIn,
  readLateSignIn,
  requestLateSignIn,
  storeSignInEnding,
} from '../calls/late-sign-ins.ts'
import { toAnswerOutcome } from '../calls/question-terms.ts'
import type { CallOutcome } from '../calls/run-call.ts'
import type { LiveElicitation } from '../calls/run-state.ts'
import { RunState } from '../calls/run-state.ts'
import type { LiveSession, OpenCall } from './open-call.ts'
import {
  addInside,
  canCallWait,
  sendPending,
  settleCall,
  writeEvent,
  writeEventInside,
} from './open-call.ts'

/** The result that the model receives from a tool that runs on. */
const PENDING = { status: 'pending', note: 'Under way. The result comes later.' } as const

/** Runs a call. `late`: the approval of a call that was approved before the sign-in that it runs after. */
export async function runOpenCall(
  live: LiveSession,
  call: OpenCall,
  approval?: Approval,
  late?: Approval,
): Promise<void> {
  await confirm(live, call, approval, late)
  const outer = createRun(live, call)
  const { outcome, ended, signIn } = await runAndRecord(live, call, { approval, late, outer })
  if (signIn && ended) pauseForSignIn(call, outer, { approval: ended, question: signIn })
  const signedIn =
    late && ended && (await storeSignIn(live, call, { approval: late, question: ended }))
  outer.markStored()
  call.endings.push(...outer.endingsStored)
  // An agent that the call ran has lost a call to another process.
  call.loss = outer.loss
  const isRecorded = (!approval || ended !== undefined) && !call.loss
  const pause = outer.takePause(call.id)
  if (isRecorded && outcome.by === 'failure' && !isReported(outcome)) live.onError(outcome.error)
  call.hidesError = outcome.by === 'failure' && outcome.hidden
  await live.calls.advance(call, {
    type: 'ran',
    ...readResult(call, withEditedArgs(outcome, approval)),
    isRecorded,
    ended,
    pause,
    signedIn,
    question: approval || pause ? undefined : await findQuestion(live, call),
  })
}

interface ApprovedRun {
  readonly approval: Approval | undefined
  readonly late: Approval | undefined
  readonly outer: RunState
}

interface Ran {
  readonly outcome: CallOutcome
  /** The approval with the recorded outcome, if the call needed one. */
  readonly ended: Approval | undefined
  /** The sign-in that the call has asked for. */
  readonly signIn: Approval | undefined
}

/** Runs the tool of a call, or takes the answer of a person in its place, and records the outcome of an approved call. */
async function runAndRecord(
  { runTool, terms, ledger }: LiveSession,
  call: OpenCall,
  { approval, late, outer }: ApprovedRun,
): Promise<Ran> {
  let ended: Approval | undefined
  let signIn: Approval | undefined
  const record = async (made: CallOutcome): Promise<void> => {
    signIn = readLateSignIn(made.result)
    if (approval) ended = await recordOutcome(ledger, approval, { outcome: made, judge: terms })
  }
  const answered = approval && toAnswerOutcome(approval)
  if (answered) await record(answered)
  const edited = late && approval ? { ...call, toolArgs: { ...approval.args } } : undefined
  const outcome = answered ?? (await runTool(edited ?? withEdits(call, approval), record, outer))
  return { outcome, ended, signIn }
}

/** Only a browser tool waits for its result in a live session. */
function readResult(
  { tool }: OpenCall,
  result: unknown,
): { readonly response: Record<string, unknown>; readonly isOpen: boolean } {
  if (result !== undefined || !tool.isLongRunning)
    return { response: toResponse(result), isOpen: false }
  return { response: PENDING, isOpen: asBrowserTool(tool) !== undefined }
}

/** Confirms a call for its tool, if it was approved or if its tool would ask otherwise. */
async function confirm(
  { signIns }: LiveSession,
  call: OpenCall,
  approval: Approval | undefined,
  late: Approval | undefined,
): Promise<void> {
  const { toolContext } = call
  if (approval?.terms.kind === 'sign-in')
    signIns?.markSignedIn(toolContext, { isApproved: late !== undefined })
  else if (approval) signIns?.markApproved(toolContext, approval)
  if (approval) confirmCall(toolContext, late ?? approval)
  else await confirmUnasked(call)
  if (toolContext.toolConfirmation) toolContext.actions.requestedToolConfirmations = {}
}

/** Returns the terms of a confirmation that a tool has requested itself while it ran. */
async function findQuestion(
  live: LiveSession,
  call: OpenCall,
): Promise<ResolvedTerms | 'unavailable' | undefined> {
  const question = call.toolContext.actions.requestedToolConfirmations[call.id]
  if (!question) return undefined
  return canCallWait(call) ? resolveQuestion(live, call, question) : 'unavailable'
}

/** Whether the check of a nested session has reported an error before. */
function isReported({ error }: { readonly error: Error }): boolean {
  return error instanceof ApprovalUnavailableError
}

/** Asks for the sign-in of an approved call. Returns the result of the call until the sign-in has ended. */
export async function askForSignIn(
  live: LiveSession,
  toolCall: ToolCall,
  approval: Approval,
  call: OpenCall | undefined,
): Promise<Record<string, unknown>> {
  const { ledger } = live
  const terms = await resolveQuestion(live, toolCall, { hint: '' })
  if (!terms) return APPROVAL_UNAVAILABLE
  const onAskLive = (id: string): void => {
    if (call) addInside(live, call, id)
  }
  return requestLateSignIn(toolCall, { approval, terms, ledger, onAskLive })
}

/** Continues an approved call whose sign-in has ended: runs it, or settles it without running it. */
export async function resumeSignIn(live: LiveSession, call: OpenCall): Promise<void> {
  const { ledger } = live
  const late = await findLateSignIn(call, ledger)
  let { question } = late ?? {}
  if (late && question?.state.name === 'approved') {
    const claimed = await ledger.claim(question.id, question)
    if (!isRefusal(claimed)) return runOpenCall(live, call, claimed, late.approval)
    question = await ledger.get(question.id)
  }
  const hasRun = question?.state.name === 'succeeded' || question?.state.name === 'failed'
  const ending = question && !hasRun ? describeEnding(question) : undefined
  if (late && question && ending)
    return settleSignIn(live, call, { approval: late.approval, question }, ending)
  // Another process runs the call and reports its result.
  await live.calls.advance(call, { type: 'claim-refused', approval: undefined })
}

/** Settles an approved call with the end of its sign-in. */
export async function settleSignIn(
  live: LiveSession,
  call: OpenCall,
  signIn: LateSignIn,
  { response, note }: Ending,
): Promise<void> {
  await settleCall(live, call, response, await storeSignIn(live, call, signIn, note))
}

/** Stores how the sign-in of an approved call ended. Returns the note for the call. */
async function storeSignIn(
  live: LiveSession,
  call: OpenCall,
  signIn: LateSignIn,
  note = toApprovedNote(signIn.question),
): Promise<DecidedNote> {
  call.endings.push(signIn.question.toolCallId)
  return storeSignInEnding(call, createRun(live, call), { ...signIn, note })
}

/** Creates the run that an agent used as a tool runs in. */
function createRun(live: LiveSession, call: OpenCall): RunState {
  const { terms, messages } = live
  return new RunState(messages.messageIdOf(call.id), 'message', undefined, {
    deadlineMs: terms.deadlineMs,
    canWait: canCallWait(call),
    store: (event) => writeEventInside(live, call.id, event),
    onAsk: (toolCallId) => addInside(live, call, toolCallId),
    elicitation: createElicitation(live, call),
  })
}

/** Lets the MCP server of a call ask a person. The message pauses meanwhile, as for any other question. */
function createElicitation(live: LiveSession, call: OpenCall): LiveElicitation {
  const { messages, onStateChange } = live
  return {
    // Node.js creates the signal when it is read first. Most calls ask nothing.
    get signal() {
      return call.unwanted.signal
    },
    queue: live.elicitations,
    show: (event) => writeEvent(live, call.id, event),
    onStateChange: (state) => {
      if (live.calls.isClosed) return
      call.isEliciting = state === 'asked'
      if (state === 'asked') sendPending(live, call)
      else messages.resume(call.id)
      onStateChange(call.id, state === 'asked' ? 'asking' : 'running')
    },
  }
}

async function resolveQuestion(
  live: LiveSession,
  call: ToolCall,
  question: ToolQuestion,
): Promise<ResolvedTerms | undefined> {
  const { terms, signIns } = live
  const resolved = await resolveQuestionTerms(call, question, terms)
  return resolved && (signIns?.toTerms(call.toolContext, resolved) ?? resolved)
}
