import type { Event } from '@google/adk'
import { createEvent } from '@google/adk'

import { describeEndInside, STOPPED } from '../call-responses.ts'
import { toEndingNotes } from '../events/approval-notes.ts'
import type { EventNotes } from '../events/event-notes.ts'
import { writeNotes } from '../events/event-notes.ts'
import type { Call } from '../translate/translation.ts'
import { isAskingDuringCall, isCallWaiting } from '../translate/translation.ts'
import { replayTurn } from './replay-turn.ts'
import type { StoredTurn } from './stored-turns.ts'
import { splitTurns } from './stored-turns.ts'

/** A call that has no final result, and the turn that made it. */
interface WaitingCall {
  readonly turn: StoredTurn
  readonly id: string
  readonly call: Call
}

/** Returns the calls of a conversation that wait for a person or for a result. */
export function findWaitingCalls(events: readonly Event[]): WaitingCall[] {
  return splitTurns(events).flatMap((turn) =>
    Array.from(replayTurn(turn).state.calls, ([id, call]) => ({ turn, id, call })).filter(
      ({ call }) => isCallWaiting(call) || call.state === 'running',
    ),
  )
}

/**
 * Returns the events with which a conversation continues that nobody can decide about any more: each call that waits ends as cancelled,
 * and the outcome of each call that was running is unknown.
 */
export function endWaitingCalls(events: readonly Event[], reason: string): Event[] {
  const waiting = findWaitingCalls(events)
  const inner = waiting.filter(({ call }) => call.madeBy !== undefined)
  const outer = waiting.filter(({ call }) => call.madeBy === undefined)
  return [
    ...inner.map(({ turn, id, call }) => {
      const { response, note } = endingOf(id, call, reason)
      return toEvent(turn, {
        notes: toEndingNotes('', { id, name: call.toolName, response }, note),
      })
    }),
    ...outer.map(({ turn, id, call }) => {
      const inside = inner.find((each) => each.turn === turn && each.call.madeBy === id)
      const { response, note } = endingOf(id, call, reason)
      return toEvent(turn, {
        functionResponse: {
          id,
          name: call.toolName,
          response: inside
            ? describeEndInside(
                inside.call.toolName,
                endingOf(inside.id, inside.call, reason).response,
              )
            : response,
        },
        notes: call.approval?.state === 'requested' ? { decided: [note] } : {},
      })
    }),
  ]
}

function endingOf(toolCallId: string, call: Call, reason: string) {
  const isRunning = call.state === 'running' && !isAskingDuringCall(call)
  return {
    response: isRunning ? { ...STOPPED } : { status: 'cancelled', error: `Not run: ${reason}.` },
    note: { toolCallId, state: 'cancelled', reason } as const,
  }
}

interface EndingEvent {
  readonly functionResponse?: NonNullable<Parts[number]['functionResponse']>
  readonly notes: EventNotes
}
type Parts = NonNullable<NonNullable<Event['content']>['parts']>

function toEvent(turn: StoredTurn, { functionResponse, notes }: EndingEvent): Event {
  return createEvent({
    author: turn.runs.flat().at(-1)?.author ?? 'model',
    invocationId: turn.firstEvent.invocationId,
    customMetadata: writeNotes({ ...notes, messageId: turn.messageId }),
    ...(functionResponse && { content: { role: 'user', parts: [{ functionResponse }] } }),
  })
}
