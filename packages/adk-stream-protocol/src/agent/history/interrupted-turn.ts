import type { Event } from '@google/adk'
import { getFunctionResponses } from '@google/adk'

import type { Translation } from '../translate/translation.ts'
import { isCallWaiting } from '../translate/translation.ts'
import { hasFinalResponse } from './cut-events.ts'
import { readNotes } from './event-notes.ts'
import type { StoredTurn } from './replay-turn.ts'
import { replayTurn } from './replay-turn.ts'

/** How often a turn is continued. Each attempt adds events to the session. */
const MAX_ATTEMPTS = 5

/**
 * Returns the confirmation request with which a turn continues whose server stopped after the result of a call was stored and before
 * the agent replied to it. Returns undefined if the turn waits for something, if a person stopped it, or if anything was written after
 * the result: then a tool or a node may have started, and must not start twice.
 */
export function findContinuation(turn: StoredTurn, approved: ApprovedCall): string | undefined {
  return continuationOf(turn.events, callsOf(turn), approved)
}

/** Whether another server continues a turn: it waits, or the agent has not replied to the result of an approved call. */
export function canBeContinued(turn: StoredTurn): boolean {
  const calls = callsOf(turn)
  return [...calls].some(([toolCallId, call]) => {
    const { approvalId: id } = call.approval ?? {}
    if (isCallWaiting(call)) return true
    return id !== undefined && continuationOf(turn.events, calls, { id, toolCallId }) !== undefined
  })
}

interface ApprovedCall {
  /** The id of the approval. */
  readonly id: string
  readonly toolCallId: string
}

type Calls = Translation['calls']

function callsOf(turn: StoredTurn): Calls {
  return replayTurn(turn, { exposeState: () => false }).state.calls
}

function continuationOf(
  events: readonly Event[],
  calls: Calls,
  { id: approvalId, toolCallId }: ApprovedCall,
): string | undefined {
  const isOpen = [...calls.values()].some((call) => call.state !== 'settled' || isCallWaiting(call))
  if (isOpen || events.some(({ interrupted }) => interrupted)) return undefined
  let outerId = toolCallId
  for (let id = calls.get(outerId)?.madeBy; id !== undefined; id = calls.get(id)?.madeBy)
    outerId = id
  const index = events.findLastIndex((event) => hasFinalResponse(event, outerId))
  const result = events[index]
  if (!result || endsRun(result) || events.slice(index + 1).some(isProgress)) return undefined
  const request = outerId === toolCallId ? approvalId : calls.get(outerId)?.resumedBy
  const attempts = events.filter((event) =>
    getFunctionResponses(event).some(({ id }) => id === request),
  )
  return attempts.length > MAX_ATTEMPTS ? undefined : request
}

/** Whether an agent ends with a result: the result is its reply, or another agent continues. */
function endsRun({ actions }: Event): boolean {
  return actions.skipSummarization === true || actions.transferToAgent !== undefined
}

/** Whether an event shows that an agent has continued, apart from the next attempt to continue it. */
function isProgress(event: Event): boolean {
  const { node, nested } = readNotes(event)
  if (event.author === 'user') return false
  const hasContent = (event.content?.parts ?? []).length > 0
  return hasContent || event.errorCode !== undefined || node !== undefined || nested !== undefined
}
