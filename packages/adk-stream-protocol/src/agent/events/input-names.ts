import type { Event } from '@google/adk'
import type { FunctionCall } from '@google/genai'

import type { EventNotes } from './event-notes.ts'

/** ADK's call that requests input from a person. */
export const INPUT_CALL = 'adk_request_input'

/**
 * The name under which a session stores `adk_request_input` calls of a model. ADK 2.0.0 hides events with the original name from the
 * model, with all other calls of the same event: the model would not know what it asked, and ADK would not find the calls of results.
 */
export const STORED_INPUT_CALL = 'bridge_request_input'

/** Returns the name of a tool as clients and the model know it. */
export function readCallName(name: string): string {
  return name === STORED_INPUT_CALL ? INPUT_CALL : name
}

/** The start of the ids that the bridge gives to calls of workflow nodes. */
export const NODE_CALL = 'node-'

/** Whether a node of a workflow made the call (`RequestInput`). The workflow looks for the response under the original name. */
export function isInterrupt({ id, name, args }: FunctionCall): boolean {
  if (id === undefined || name !== INPUT_CALL) return false
  const interruptId = args?.['interruptId']
  return interruptId === id || (typeof interruptId === 'string' && id.startsWith(NODE_CALL))
}

/**
 * Whether a call waits for a result from outside as soon as it is made. A call that is checked for an approval first waits later, and the
 * question of a model when it is asked: its server may crash before that.
 */
export function waitsForResult(
  event: Event,
  call: FunctionCall,
  { unchecked }: Pick<EventNotes, 'unchecked'>,
): boolean {
  const { id = '', name = '' } = call
  if (event.longRunningToolIds?.includes(id) !== true) return false
  const isQuestion = readCallName(name) === INPUT_CALL && !isInterrupt(call)
  return !isQuestion && unchecked?.includes(id) !== true
}
