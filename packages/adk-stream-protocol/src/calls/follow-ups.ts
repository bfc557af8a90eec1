import type { ToolCall } from '../agent/tool-call.ts'
import { chatOf } from '../agent/tool-call.ts'
import {
  describeEnding,
  describeRefusedRequest,
  PENDING_INSIDE,
  toPendingNote,
} from '../agent/call-responses.ts'
import { toAskedNote, toEndingNotes } from '../agent/events/approval-notes.ts'
import type { DecidedNote } from '../agent/events/event-notes.ts'
import type { Approval } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import type { ResolvedTerms } from '../approvals/policy.ts'
import { isRefusal } from '../approvals/approval.ts'
import type { CallKinds } from './call-kind.ts'
import { toFollowUpId } from './call-kind.ts'
import { toFollowUpResult } from './follow-up-results.ts'
import type { RunState } from './run-state.ts'
import { storeNote } from './run-state.ts'

type Response = Record<string, unknown>

interface FollowUpOptions {
  readonly approval: Approval
  readonly terms: ResolvedTerms
  readonly ledger: Ledger
  /** Set if ADK does not run the call. Called before the question is asked, because it may end at once. */
  readonly onAsk?: ((toolCallId: string) => void) | undefined
}

/** An approved call that has asked a person for something else while it ran, such as a sign-in. */
export interface FollowUp {
  readonly approval: Approval
  readonly question: Approval
}

/**
 * Asks what an approved call needs besides. The ledger has one entry for each call, so the question is a call inside the approved one, and
 * the outcome of the call is recorded with it. Returns the result of the approved call until then.
 */
export async function requestFollowUp(
  { tool, toolArgs, toolContext }: ToolCall,
  { approval, terms, ledger, onAsk }: FollowUpOptions,
): Promise<Response> {
  const { deadlineMs, ...rest } = terms
  const { chat, messageId } = approval
  const path = approval.terms.path ?? [toolContext.agentName]
  const toolCallId = toFollowUpId(approval.toolCallId, terms.kind)
  onAsk?.(toolCallId)
  const question = await ledger.request({
    chat,
    messageId,
    toolCallId,
    toolName: tool.name,
    args: toolArgs,
    terms: { ...rest, path },
    deadlineMs,
    ...(onAsk && { isAwaited: true }),
  })
  if (isRefusal(question)) return describeRefusedRequest(question)
  // The question may have ended before a crash.
  const ending = describeEnding(question)
  return ending ? ending.response : toFollowUpResult(question)
}

/** Pauses an approved call until its question has ended. */
export function pauseForFollowUp(
  { toolContext }: ToolCall,
  run: RunState,
  { approval, question }: FollowUp,
): Response {
  const toolCallId = toolContext.functionCallId ?? ''
  const { toolName, args } = question
  const asked = { ...toAskedNote(question, { state: 'none' }), toolName, args }
  run.pausing.set(toolCallId, { session: question.id, asked: [asked] })
  run.decided.set(toolCallId, toPendingNote(approval))
  toolContext.requestConfirmation({ hint: question.terms.hint ?? '' })
  toolContext.actions.skipSummarization = true
  return { ...PENDING_INSIDE }
}

/** Returns an approved call with the question that it asked while it ran. Returns undefined if it asked none. */
export async function findFollowUp(
  { toolContext }: ToolCall,
  { ledger, kinds }: FollowUpPlace,
): Promise<FollowUp | undefined> {
  const toolCallId = toolContext.functionCallId ?? ''
  const chat = chatOf(toolContext.invocationContext.session)
  const question = await findQuestion({ chat, toolCallId }, { ledger, kinds })
  const approval = question && (await ledger.findByCall(chat, toolCallId))
  // An approved call that was interrupted before it had waited runs again, or its outcome is unknown.
  return question && approval?.state.name === 'succeeded' ? { approval, question } : undefined
}

interface FollowUpPlace {
  readonly ledger: Ledger
  readonly kinds: CallKinds
}

async function findQuestion(
  { chat, toolCallId }: Pick<Approval, 'chat' | 'toolCallId'>,
  { ledger, kinds }: FollowUpPlace,
): Promise<Approval | undefined> {
  for (const id of kinds.toFollowUpIds(toolCallId)) {
    const found = await ledger.findByCall(chat, id)
    if (found) return found
  }
  return undefined
}

/** Whether an approved call has asked for something else while it ran: then its outcome is that of its question. */
export async function hasFollowUp(approval: Approval, place: FollowUpPlace): Promise<boolean> {
  if (approval.state.name !== 'succeeded') return false
  return (await findQuestion(approval, place)) !== undefined
}

/**
 * Stores how the question of an approved call ended, in the conversation. Its own result says only that: the result of the tool is that of
 * the approved call. Returns the note for the approved call.
 */
export async function storeFollowUpEnding(
  { toolContext }: ToolCall,
  run: RunState,
  {
    approval,
    question,
    note,
    kinds,
  }: FollowUp & { readonly note: DecidedNote; readonly kinds: CallKinds },
): Promise<DecidedNote> {
  const { toolCallId: id, toolName: name } = question
  const isAnswered = note.state === 'approved' || note.state === 'unknown'
  const response = isAnswered
    ? kinds.of(question).followUp?.answered
    : describeEnding(question)?.response
  const { outcome, receipt, at, ...shown } = note
  const notes = toEndingNotes(
    question.id,
    { id, name, response: { ...response } },
    isAnswered ? { ...shown, state: 'approved' } : note,
  )
  await storeNote(run.rootOf(toolContext.invocationContext), notes)
  run.markEndingPending(id)
  return {
    ...toPendingNote(approval),
    state: note.state === 'unknown' ? 'unknown' : 'approved',
    ...(outcome && { outcome }),
    ...(receipt && { receipt }),
    ...(at !== undefined && { at }),
  }
}
