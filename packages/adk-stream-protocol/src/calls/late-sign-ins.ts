import type { ToolCall } from '../agent/tool-call.ts'
import { chatOf } from '../agent/tool-call.ts'
import {
  describeEnding,
  describeRefusedRequest,
  PENDING_INSIDE,
  toPendingNote,
  toNestedEnding,
} from '../agent/call-responses.ts'
import type { DecidedNote } from '../agent/history/event-notes.ts'
import type { Approval } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import type { ResolvedTerms } from '../approvals/policy.ts'
import { isRefusal } from '../approvals/approval.ts'
import { toAskedNote } from './approval-events.ts'
import type { RunState } from './run-state.ts'
import { findRoot, storeNote } from './run-state.ts'

type Response = Record<string, unknown>

interface LateSignInOptions {
  readonly approval: Approval
  readonly terms: ResolvedTerms
  readonly ledger: Ledger
  /** Called in a live session before the sign-in is requested, because it may end at once. */
  readonly onAskLive?: ((toolCallId: string) => void) | undefined
}

/** An approved call that waits, or waited, for a sign-in. */
export interface LateSignIn {
  readonly approval: Approval
  /** The question for the sign-in. */
  readonly question: Approval
}

/** The results of approved calls that wait for a sign-in, with its question. */
const waiting = new WeakMap<object, Approval>()

/**
 * Requests the sign-in that an approved call needs. The ledger has one entry for each call, so the sign-in is a call inside the approved
 * one, and the outcome of the call is recorded with it. Returns the result of the approved call until then.
 */
export async function requestLateSignIn(
  { tool, toolArgs, toolContext }: ToolCall,
  { approval, terms, ledger, onAskLive }: LateSignInOptions,
): Promise<Response> {
  const { deadlineMs, ...rest } = terms
  const { chat, messageId } = approval
  const path = approval.terms.path ?? [toolContext.agentName]
  const toolCallId = toSignInCallId(approval.toolCallId)
  onAskLive?.(toolCallId)
  const question = await ledger.request({
    chat,
    messageId,
    toolCallId,
    toolName: tool.name,
    args: toolArgs,
    terms: { ...rest, path },
    deadlineMs,
    ...(onAskLive && { live: true }),
  })
  if (isRefusal(question)) return describeRefusedRequest(question)
  const result = { ...PENDING_INSIDE }
  // The question may have ended before a crash.
  const ending = describeEnding(question)
  if (ending) return ending.response
  waiting.set(result, question)
  return result
}

/** Returns the sign-in that an approved call waits for, if this is its result. */
export function readLateSignIn(result: unknown): Approval | undefined {
  return typeof result === 'object' && result !== null ? waiting.get(result) : undefined
}

/** Pauses an approved call until the person has signed in or declined. */
export function pauseForSignIn(
  { toolContext }: ToolCall,
  run: RunState,
  { approval, question }: LateSignIn,
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

/** Returns an approved call that waits, or waited, for a sign-in, with the question. */
export async function findLateSignIn(
  { toolContext }: ToolCall,
  ledger: Ledger,
): Promise<LateSignIn | undefined> {
  const toolCallId = toolContext.functionCallId ?? ''
  const chat = chatOf(toolContext.invocationContext.session)
  const question = await ledger.findByCall(chat, toSignInCallId(toolCallId))
  const approval = question && (await ledger.findByCall(chat, toolCallId))
  // An approved call that was interrupted before it had waited runs again, or its outcome is unknown.
  return question && approval?.state.name === 'succeeded' ? { approval, question } : undefined
}

/** Whether an approved call waits, or waited, for a sign-in: then its outcome is that of the sign-in. */
export async function waitsForSignIn(
  { chat, toolCallId, state }: Approval,
  ledger: Ledger,
): Promise<boolean> {
  if (state.name !== 'succeeded') return false
  return (await ledger.findByCall(chat, toSignInCallId(toolCallId))) !== undefined
}

/**
 * Stores how a sign-in ended, in the conversation. Its own result says only that: the result of the tool is that of the approved call.
 * Returns the note for the approved call.
 */
export async function storeSignInEnding(
  { toolContext }: ToolCall,
  run: RunState,
  { approval, question, note }: LateSignIn & { readonly note: DecidedNote },
): Promise<DecidedNote> {
  const { toolCallId: id, toolName: name } = question
  const isSignedIn = note.state === 'approved' || note.state === 'unknown'
  const response = isSignedIn ? { status: 'signed-in' } : describeEnding(question)?.response
  const { outcome, receipt, at, ...shown } = note
  const ending = toNestedEnding(
    { id, name, response: response ?? {} },
    isSignedIn ? { ...shown, state: 'approved' } : note,
  )
  await storeNote(findRoot(run, toolContext), { nested: { session: question.id, event: ending } })
  run.markEndingPending(id)
  return {
    ...toPendingNote(approval),
    state: note.state === 'unknown' ? 'unknown' : 'approved',
    ...(outcome && { outcome }),
    ...(receipt && { receipt }),
    ...(at !== undefined && { at }),
  }
}

/** Returns the id of the sign-in of an approved call. */
export function toSignInCallId(toolCallId: string): string {
  return `${toolCallId}.sign-in`
}
