import type { Event } from '@google/adk'
import type { Content, Part } from '@google/genai'

/** ADK's call that requests input from a person. */
export const INPUT_CALL = 'adk_request_input'

/**
 * The name under which a session stores `adk_request_input` calls of a model. ADK 2.0.0 hides events with the original name from the
 * model, with all other calls of the same event: the model would not know what it asked, and ADK would not find the calls of results.
 */
const STORED_INPUT_CALL = 'bridge_request_input'

/** Returns the name of a tool as clients and the model know it. */
export function readCallName(name: string): string {
  return name === STORED_INPUT_CALL ? INPUT_CALL : name
}

/** Returns an event as it is stored: calls of a model for input, and the responses to them, have another name. */
export function toStoredEvent(event: Event, earlier: readonly Event[]): Event {
  const { content } = event
  if (!content?.parts?.some((part) => isInput(part))) return event
  const isOwn = ({ functionCall, functionResponse }: Part): boolean =>
    functionCall ? !isInterrupt(functionCall) : isStoredCall(functionResponse?.id, earlier)
  const parts = content.parts.map((part) =>
    isInput(part) && isOwn(part) ? rename(part, STORED_INPUT_CALL) : part,
  )
  return { ...event, content: { ...content, parts } }
}

/** Gives the calls of a model for input their own name again, in what the model is about to read. */
export function restoreCallNames(contents: readonly Content[]): void {
  for (const content of contents)
    if (content.parts?.some((part) => nameOf(part) === STORED_INPUT_CALL))
      content.parts = content.parts.map((part) =>
        nameOf(part) === STORED_INPUT_CALL ? rename(part, INPUT_CALL) : part,
      )
}

function nameOf({ functionCall, functionResponse }: Part): string | undefined {
  return functionCall?.name ?? functionResponse?.name
}

function isInput(part: Part): boolean {
  return nameOf(part) === INPUT_CALL
}

/** Whether a node of a workflow made the call. The workflow looks for the response under the original name. */
function isInterrupt({ id, args }: NonNullable<Part['functionCall']>): boolean {
  return id !== undefined && args?.['interruptId'] === id
}

function isStoredCall(id: string | undefined, events: readonly Event[]): boolean {
  return events.some(({ content }) =>
    content?.parts?.some(
      ({ functionCall }) => functionCall?.id === id && functionCall?.name === STORED_INPUT_CALL,
    ),
  )
}

function rename(part: Part, name: string): Part {
  const { functionCall, functionResponse } = part
  return {
    ...part,
    ...(functionCall && { functionCall: { ...functionCall, name } }),
    ...(functionResponse && { functionResponse: Object.assign({}, functionResponse, { name }) }),
  }
}
