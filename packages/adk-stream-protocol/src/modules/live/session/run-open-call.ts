import type { Ending } from '../../../agent/call-responses.ts'
import {
  APPROVAL_UNAVAILABLE,
  ApprovalUnavailableError,
  describeEnding,
  toApprovedNote,
  toResponse,
  UNDER_WAY,
} from '../../../agent/call-responses.ts'
import type { DecidedNote } from '../../../agent/events/event-notes.ts'
import type { ToolCall } from '../../../agent/tool-call.ts'
import type { Approval } from '../../../approvals/approval.ts'
import { isRefusal } from '../../../approvals/approval.ts'
import type { ResolvedTerms } from '../../../approvals/policy.ts'
import {
  confirmCall,
  recordOutcome,
  withEditedArgs,
  withEdits,
} from '../../../calls/approved-call.ts'
import type { ToolQuestion } from '../../../calls/call-terms.ts'
import { confirmUnasked, resolveQuestionTerms } from '../../../calls/call-terms.ts'
import { asClientTool } from '../../../calls/client-tool.ts'
import { readFollowUp } from '../../../calls/follow-up-results.ts'
import type { FollowUp } from '../../../calls/follow-ups.ts'
import {
  findFollowUp,
  pauseForFollowUp,
  requestFollowUp,
  storeFollowUpEnding,
} from '../../../calls/follow-ups.ts'
import type { CallOutcome } from '../../../calls/run-call.ts'
import type { OutsideQuestions } from '../../../calls/run-state.ts'
import { RunState } from '../../../calls/run-state.ts'
import type { LiveSession, OpenCall } from './open-call.ts'
import {
  addInside,
  canCallWait,
  sendPending,
  settleCall,
  writeEvent,
  writeEventInside,
} from './open-call.ts'

/** Runs a call. `approved`: the approval of a call that runs after the answer to its follow-up, which is `approval`. */
export async function runOpenCall(
  live: LiveSession,
  call: OpenCall,
  approval?: Approval,
  approved?: Approval,
): Promise<void> {
  await confirm(live, call, approval, approved)
  const outer = createRun(live, call)
  const { outcome, ended, asked } = await runAndRecord(live, call, { approval, approved, outer })
  if (asked && ended) pauseForFollowUp(call, outer, { approval: ended, question: asked })
  const answered =
    approved && ended && (await storeFollowUp(live, call, { approval: approved, question: ended }))
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
    answered,
    question: approval || pause ? undefined : await findQuestion(live, call),
  })
}

interface ApprovedRun {
  readonly approval: Approval | undefined
  readonly approved: Approval | undefined
  readonly outer: RunState
}

interface Ran {
  readonly outcome: CallOutcome
  /** The approval with the recorded outcome, if the call needed one. */
  readonly ended: Approval | undefined
  /** The follow-up that the call has asked. */
  readonly asked: Approval | undefined
}

/** Runs the tool of a call, or takes the answer of a person in its place, and records the outcome of an approved call. */
async function runAndRecord(
  { runTool, terms, ledger, kinds }: LiveSession,
  call: OpenCall,
  { approval, approved, outer }: ApprovedRun,
): Promise<Ran> {
  let ended: Approval | undefined
  let asked: Approval | undefined
  const record = async (made: CallOutcome): Promise<void> => {
    asked = readFollowUp(made.result)
    if (approval) ended = await recordOutcome(ledger, approval, { outcome: made, judge: terms })
  }
  const answered = approval && kinds.toAnswerOutcome(approval)
  if (answered) await record(answered)
  const edited = approved && approval ? { ...call, toolArgs: { ...approval.args } } : undefined
  const outcome = answered ?? (await runTool(edited ?? withEdits(call, approval), record, outer))
  return { outcome, ended, asked }
}

/** Only a tool that runs in a client waits for its result in a live session. */
function readResult(
  { tool }: OpenCall,
  result: unknown,
): { readonly response: Record<string, unknown>; readonly isOpen: boolean } {
  if (result !== undefined || !tool.isLongRunning)
    return { response: toResponse(result), isOpen: false }
  return { response: UNDER_WAY, isOpen: asClientTool(tool) !== undefined }
}

/** Confirms a call for its tool, if it was approved or if its tool would ask otherwise. */
async function confirm(
  { kinds }: LiveSession,
  call: OpenCall,
  approval: Approval | undefined,
  approved: Approval | undefined,
): Promise<void> {
  const { toolContext } = call
  if (approval) {
    kinds.noteClaimed(toolContext, approval, approved)
    confirmCall(toolContext, approved ?? approval)
  } else await confirmUnasked(call)
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

/** Asks what an approved call needs besides. Returns the result of the call until the person has answered. */
async function askFollowUp(
  live: LiveSession,
  call: OpenCall,
  { toolCall, approval }: { readonly toolCall: ToolCall; readonly approval: Approval },
): Promise<Record<string, unknown>> {
  const { ledger } = live
  const terms = await resolveQuestion(live, toolCall, { hint: '' })
  if (!terms) return APPROVAL_UNAVAILABLE
  const onAsk = (id: string): void => {
    if (live.calls.isOpen(call)) addInside(live, call, id)
  }
  return requestFollowUp(toolCall, { approval, terms, ledger, onAsk })
}

/** Continues an approved call whose follow-up has ended: runs it, or settles it without running it. */
export async function resumeFollowUp(live: LiveSession, call: OpenCall): Promise<void> {
  const { ledger } = live
  const asked = await findFollowUp(call, live)
  let { question } = asked ?? {}
  if (asked && question?.state.name === 'approved') {
    const claimed = await ledger.claim(question.id, question)
    if (!isRefusal(claimed)) return runOpenCall(live, call, claimed, asked.approval)
    question = await ledger.get(question.id)
  }
  const hasRun = question?.state.name === 'succeeded' || question?.state.name === 'failed'
  const ending = question && !hasRun ? describeEnding(question) : undefined
  if (asked && question && ending)
    return settleFollowUp(live, call, { approval: asked.approval, question }, ending)
  // Another process runs the call and reports its result.
  await live.calls.advance(call, { type: 'claim-refused', approval: undefined })
}

/** Settles an approved call with the end of its follow-up. */
export async function settleFollowUp(
  live: LiveSession,
  call: OpenCall,
  asked: FollowUp,
  { response, note }: Ending,
): Promise<void> {
  await settleCall(live, call, response, {
    note: await storeFollowUp(live, call, asked, note),
  })
}

/** Stores how the follow-up of an approved call ended. Returns the note for the call. */
async function storeFollowUp(
  live: LiveSession,
  call: OpenCall,
  asked: FollowUp,
  note = toApprovedNote(asked.question),
): Promise<DecidedNote> {
  const { kinds } = live
  call.endings.push(asked.question.toolCallId)
  return storeFollowUpEnding(call, createRun(live, call), { ...asked, note, kinds })
}

/** Creates the run that an agent used as a tool runs in. */
function createRun(live: LiveSession, call: OpenCall): RunState {
  const { terms, messages } = live
  return new RunState(messages.messageIdOf(call.id), 'message', {
    deadlineMs: terms.deadlineMs,
    canWait: canCallWait(call),
    store: (event) => writeEventInside(live, call.id, event),
    onAsk: (toolCallId) => addInside(live, call, toolCallId),
    askFollowUp: (toolCall, approval) => askFollowUp(live, call, { toolCall, approval }),
    questions: createQuestions(live, call),
  })
}

/** Lets a call ask a person while it runs. The message pauses then, as for any other question. */
function createQuestions(live: LiveSession, call: OpenCall): OutsideQuestions {
  const { messages, onStateChange } = live
  return {
    // Node.js creates the signal when it is read first. Most calls ask nothing.
    get signal() {
      return call.unwanted.signal
    },
    queue: live.questions,
    show: (event) => writeEvent(live, call.id, event),
    onStateChange: (state) => {
      if (live.calls.isClosed) return
      call.asksDuringRun = state === 'asked'
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
  const resolved = await resolveQuestionTerms(call, question, live.terms)
  return resolved && live.kinds.toTerms(call.toolContext, resolved)
}
