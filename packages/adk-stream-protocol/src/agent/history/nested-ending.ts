import type { Event } from '@google/adk'
import { createEvent } from '@google/adk'
import type { FunctionResponse } from '@google/genai'

import type { DecidedNote } from './event-notes.ts'
import { writeNotes } from './event-notes.ts'

/** Creates the event with the result of a call inside an agent that is used as a tool, after the agent has ended. */
export function toNestedEnding(functionResponse: FunctionResponse, note: DecidedNote): Event {
  return createEvent({
    author: 'user',
    content: { role: 'user', parts: [{ functionResponse }] },
    customMetadata: writeNotes({ decided: [note] }),
  })
}

/** Returns the response to the call of an agent that cannot continue, because a call inside it has ended without it. */
export function describeEndInside(
  toolName: string,
  { error }: Readonly<Record<string, unknown>>,
): { readonly error: string } {
  const reason = typeof error === 'string' ? ` ${error}` : ''
  return { error: `Not finished: its call of ${toolName} has ended without the agent.${reason}` }
}
