import type { Event } from '@google/adk'
import { getFunctionResponses } from '@google/adk'
import type { FunctionResponse } from '@google/genai'

import type { Translation } from '../translate/translation.ts'
import { isCallWaiting } from '../translate/translation.ts'
import { hasFinalResponse } from './cut-events.ts'
import { readNotes } from './event-notes.ts'
import { endsAgent } from './find-steps.ts'
import type { StoredTurn } from './replay-turn.ts'
import { replayTurn } from './replay-turn.ts'

/** How often a turn is continued. Each attempt adds events to the session. */
const MAX_ATTEMPTS = 5

/** What makes ADK continue a turn: another confirmation of a call, or the answer to a question once more. */
export type Continuation =
  | { readonly confirmationId: string }
  | { readonly answer: FunctionResponse }

/**
 * Returns what makes ADK continue a turn whose server stopped after it had stored the result of a call, or an answer. Returns undefined
 * if the turn waits for something, if a person stopped it, or if it has ended. Without a workflow, it also returns undefined if anything
 * was stored after the result: a tool may have started then, and must not start twice.
 */
export function findContinuation(turn: StoredTurn, decided: DecidedCall): Continuation | undefined {
  return continuationOf(turn.events, callsOf(turn), decided)
}

/** Whether another server continues a turn: it waits, or has not ended after the result of an approved call. */
export function canBeContinued(turn: StoredTurn): boolean {
  const calls = callsOf(turn)
  return [...calls].some(([toolCallId, call]) => {
    const { approvalId: id } = call.approval ?? {}
    if (isCallWaiting(call)) return true
    return id !== undefined && continuationOf(turn.events, calls, { id, toolCallId }) !== undefined
  })
}

/** Whether a turn is a workflow that has continued after a decision or an answer, so that its agents reply again after a crash. */
export function repeatsReplies({ events, resumedBy }: StoredTurn): boolean {
  return resumedBy.size > 0 && findWorkflow(events) !== undefined
}

interface DecidedCall {
  /** The id of the approval. */
  readonly id: string
  readonly toolCallId: string
  /** What the approval was about. A question has a kind. */
  readonly terms?: { readonly kind?: string | undefined }
}

type Calls = Translation['calls']

function callsOf(turn: StoredTurn): Calls {
  return replayTurn(turn, { exposeState: () => false }).state.calls
}

function continuationOf(
  events: readonly Event[],
  calls: Calls,
  { id: approvalId, toolCallId, terms }: DecidedCall,
): Continuation | undefined {
  if (events.some(({ interrupted }) => interrupted)) return undefined
  const open = [...calls.values()].filter((call) => call.state !== 'settled' || isCallWaiting(call))
  const root = findWorkflow(events)
  if (root !== undefined) {
    // A call that ran when the server stopped does not run again. The agent learns that its outcome is unknown.
    const isOver = open.some(({ state }) => state !== 'running') || hasEnded(events, root)
    return isOver ? undefined : confirmAgain(events, approvalId)
  }
  if (open.length > 0) return undefined
  let outerId = toolCallId
  for (let id = calls.get(outerId)?.madeBy; id !== undefined; id = calls.get(id)?.madeBy)
    outerId = id
  const index = events.findLastIndex((event) => hasFinalResponse(event, outerId))
  const result = events[index]
  if (!result || endsAgent(result) || events.slice(index + 1).some(isProgress)) return undefined
  const isOuter = outerId === toolCallId
  if (terms?.kind === undefined)
    return confirmAgain(events, isOuter ? approvalId : calls.get(outerId)?.resumedBy)
  return isOuter && terms.kind === 'input' ? answerAgain(events, toolCallId) : undefined
}

function confirmAgain(
  events: readonly Event[],
  confirmationId: string | undefined,
): Continuation | undefined {
  const isLast = findResponses(events, confirmationId).length > MAX_ATTEMPTS
  return isLast || confirmationId === undefined ? undefined : { confirmationId }
}

function answerAgain(events: readonly Event[], toolCallId: string): Continuation | undefined {
  const answers = findResponses(events, toolCallId)
  const answer = answers.at(-1)
  return answer && answers.length <= MAX_ATTEMPTS ? { answer } : undefined
}

/** Returns the name of the workflow that a turn runs. */
function findWorkflow(events: readonly Event[]): string | undefined {
  const [path] = events.flatMap(({ nodeInfo }) => nodeInfo?.path ?? [])
  return path?.split('.')[0]
}

/** Whether a workflow has ended, or has failed. */
function hasEnded(events: readonly Event[], root: string): boolean {
  return events.some((event) => {
    const { node } = readNotes(event)
    const isDone = node?.path === root && node.state === 'done'
    return isDone || event.errorCode !== undefined
  })
}

function findResponses(events: readonly Event[], id: string | undefined): FunctionResponse[] {
  return events.flatMap(getFunctionResponses).filter((response) => response.id === id)
}

/** Whether an event shows that an agent has continued, apart from the next attempt to continue it. */
function isProgress(event: Event): boolean {
  const { node, nested } = readNotes(event)
  if (event.author === 'user') return false
  const hasContent = (event.content?.parts ?? []).length > 0
  return hasContent || event.errorCode !== undefined || node !== undefined || nested !== undefined
}
