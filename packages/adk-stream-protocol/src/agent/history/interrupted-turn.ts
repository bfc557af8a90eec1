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
 * Returns the confirmation request with which a turn continues whose server stopped after the result of a call was stored. Returns
 * undefined if the turn waits for something, if a person stopped it, or if it has ended. A turn without a workflow is not continued
 * either if anything was written after the result: then a tool may have started, and must not start twice.
 */
export function findContinuation(turn: StoredTurn, approved: DecidedCall): string | undefined {
  return continuationOf(turn.events, callsOf(turn), approved)
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
): string | undefined {
  if (events.some(({ interrupted }) => interrupted)) return undefined
  const open = [...calls.values()].filter((call) => call.state !== 'settled' || isCallWaiting(call))
  const root = findWorkflow(events)
  if (root !== undefined) {
    // A call that ran when the server stopped does not run again. The agent learns that its outcome is unknown.
    const isOver = open.some(({ state }) => state !== 'running') || hasEnded(events, root)
    return isOver || countResponses(events, approvalId) > MAX_ATTEMPTS ? undefined : approvalId
  }
  if (open.length > 0 || terms?.kind !== undefined) return undefined
  let outerId = toolCallId
  for (let id = calls.get(outerId)?.madeBy; id !== undefined; id = calls.get(id)?.madeBy)
    outerId = id
  const index = events.findLastIndex((event) => hasFinalResponse(event, outerId))
  const result = events[index]
  if (!result || endsRun(result) || events.slice(index + 1).some(isProgress)) return undefined
  const request = outerId === toolCallId ? approvalId : calls.get(outerId)?.resumedBy
  return countResponses(events, request) > MAX_ATTEMPTS ? undefined : request
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

function countResponses(events: readonly Event[], request: string | undefined): number {
  return events.filter((event) => getFunctionResponses(event).some(({ id }) => id === request))
    .length
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
