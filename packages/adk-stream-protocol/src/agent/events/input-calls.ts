import { randomUUID } from 'node:crypto'

import type { Event } from '@google/adk'
import type { Content, FunctionCall, Part } from '@google/genai'

import type { EventNotes } from './event-notes.ts'
import { readNotes } from './event-notes.ts'

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

/** Whether a node of a workflow made the call (`RequestInput`). The workflow looks for the response under the original name. */
export function isInterrupt({ id, name, args }: NonNullable<Part['functionCall']>): boolean {
  if (id === undefined || name !== INPUT_CALL) return false
  const interruptId = args?.['interruptId']
  return interruptId === id || (typeof interruptId === 'string' && id.startsWith(NODE_CALL))
}

/**
 * Whether a call waits for a result from outside as soon as it is made. A call that is checked for an approval first waits later, and the
 * question of a model when it is asked: its server may crash before that.
 */
export function waitsForResult(event: Event, call: FunctionCall): boolean {
  const { id = '', name = '' } = call
  if (event.longRunningToolIds?.includes(id) !== true) return false
  const isQuestion = readCallName(name) === INPUT_CALL && !isInterrupt(call)
  return !isQuestion && readNotes(event).unchecked?.includes(id) !== true
}

/** The start of the ids that the bridge gives to calls of workflow nodes. */
const NODE_CALL = 'node-'

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
