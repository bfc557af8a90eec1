import type { Event } from '@google/adk'

import { readNotes } from './event-notes.ts'

/** Whether events contain all of the given calls. */
export function containsCalls(events: readonly Event[], toolCallIds: readonly string[]): boolean {
  const calls = new Set(events.flatMap(callIds))
  return toolCallIds.every((id) => calls.has(id))
}

/** Returns the ids of the calls that an event makes. */
export function callIds({ content }: Event): string[] {
  return (content?.parts ?? []).flatMap(({ functionCall }) => functionCall?.id ?? [])
}

/** Returns the ids of the calls that an event responds to. */
export function responseIds({ content }: Event): string[] {
  return (content?.parts ?? []).flatMap(({ functionResponse }) => functionResponse?.id ?? [])
}

/** Whether an event has the final response of a call, and not only that the call waits. */
export function hasFinalResponse(event: Event, toolCallId: string): boolean {
  const isPending = readNotes(event).pending?.includes(toolCallId) === true
  return !isPending && responseIds(event).includes(toolCallId)
}

/** Whether an agent ends with the result of a call: the result is its reply, or another agent continues. */
export function endsAgent({ actions }: Event): boolean {
  return actions.skipSummarization === true || actions.transferToAgent !== undefined
}
