import { randomUUID } from 'node:crypto'

import type { Event } from '@google/adk'
import type { Content, FunctionCall, Part } from '@google/genai'

import type { EventNotes } from './event-notes.ts'
import { readNotes } from './event-notes.ts'
import { INPUT_CALL, isInterrupt, NODE_CALL, STORED_INPUT_CALL } from './input-names.ts'

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

/**
 * Renames the calls for input that have an answer, in the session of an agent that is used as a tool, so that ADK does not hide them from
 * its model. ADK confirms a call under its own name, so a call without an answer keeps it. `added` are the events with new answers.
 */
export function renameAnsweredCalls(events: Event[], added: readonly Event[] = events): void {
  const answered = new Set(added.flatMap((event) => listAnswered(event)))
  if (answered.size === 0) return
  const isAnswered = (part: Part): boolean =>
    isInput(part) && answered.has(part.functionCall?.id ?? part.functionResponse?.id ?? '')
  for (const [index, event] of events.entries()) {
    const { content } = event
    if (!content?.parts?.some((part) => isAnswered(part))) continue
    const parts = content.parts.map((part) =>
      isAnswered(part) ? rename(part, STORED_INPUT_CALL) : part,
    )
    events[index] = { ...event, content: { ...content, parts } }
  }
}

/** Returns the calls for input that an event answers. A placeholder is no answer. */
function listAnswered(event: Event): string[] {
  const { pending } = readNotes(event)
  return (event.content?.parts ?? []).flatMap(({ functionResponse }) => {
    const { id, name } = functionResponse ?? {}
    return id !== undefined && name === INPUT_CALL && !pending?.includes(id) ? [id] : []
  })
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

/** Gives each `RequestInput` of a node an id of its own. A node may use the same one in every turn. Changes the event in place. */
export function renameInterrupts(event: Event): void {
  for (const { functionCall } of event.content?.parts ?? []) {
    if (!functionCall || functionCall.id?.startsWith(NODE_CALL) || !isInterrupt(functionCall))
      continue
    const id = `${NODE_CALL}${randomUUID()}`
    event.longRunningToolIds = event.longRunningToolIds?.map((old) =>
      old === functionCall.id ? id : old,
    ) ?? [id]
    functionCall.id = id
  }
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

/** A message for the agent, with its notes. */
export interface NotedContent {
  readonly content: Content
  readonly notes: EventNotes
}

/**
 * Converts the response to `adk_request_input` to text. ADK 2.0.0 hides these calls and their responses from the
 * model, so the response is stored as text, and its notes identify the call. Returns undefined for the response to
 * any other call.
 */
export function toInputResponse({ parts = [] }: Content, call: FunctionCall | undefined) {
  const { id, name, response = {} } = parts[0]?.functionResponse ?? {}
  if (name !== INPUT_CALL || id === undefined) return undefined
  const question = call?.args?.['message']
  const asked = typeof question === 'string' ? question : 'your question'
  const text = `Answer to ${JSON.stringify(asked)}: ${JSON.stringify(response)}`
  const message: NotedContent = {
    content: { role: 'user', parts: [{ text }] },
    notes: { input: { toolCallId: id, response } },
  }
  return message
}
