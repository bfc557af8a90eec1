import { isDeepStrictEqual } from 'node:util'

import type {
  BaseAgent,
  BaseLlmRequestProcessor,
  Event,
  InvocationContext,
  Session,
} from '@google/adk'
import {
  CONTENT_REQUEST_PROCESSOR,
  getFunctionCalls,
  getFunctionResponses,
  isLlmAgent,
} from '@google/adk'
import type { Part } from '@google/genai'

import { readNotes } from '../events/event-notes.ts'
import { findTurn, isConfirmation } from '../history/stored-turns.ts'
import { isModelOutput } from '../tool-call.ts'

/**
 * Lets an agent and its sub-agents read the calls of each model response as one event, and their responses as another one. ADK 2.0.0
 * stores an event for each chunk of a streamed response, and all its calls run before the model continues. ADK then refuses a response
 * event that answers the calls of several events, or repeats it after each of them, or sends a placeholder although the result is known.
 * It also sends responses in the order in which they arrived, and without ids: Gemini can assign them only by the order of the calls.
 */
export function arrangeRequests(agent: BaseAgent): void {
  if (isLlmAgent(agent)) {
    const index = agent.requestProcessors.indexOf(CONTENT_REQUEST_PROCESSOR)
    if (index >= 0) agent.requestProcessors.splice(index, 1, ARRANGED_CONTENTS)
  }
  for (const subAgent of agent.subAgents) arrangeRequests(subAgent)
}

/** Fills a request as ADK does, from arranged events. */
export const ARRANGED_CONTENTS: BaseLlmRequestProcessor = {
  runAsync(context, request) {
    const { events: stored } = context.session
    const events = endWithResult(arrangeCalls(stored), context.invocationId)
    // V8 is slower with a context that has become a prototype: such an object has a hidden class of its own.
    if (events === stored) return CONTENT_REQUEST_PROCESSOR.runAsync(context, request)
    const session = Object.create(context.session, { events: { value: events } }) as Session
    const view = Object.create(context, { session: { value: session } }) as InvocationContext
    return CONTENT_REQUEST_PROCESSOR.runAsync(view, request)
  },
}

/** Returns the events with the calls of each model response joined, and their responses joined in the same order. */
function arrangeCalls(events: Event[]): Event[] {
  let arranged: Event[][] | undefined
  for (const group of groupCalls(events)) {
    const [first = 0, ...others] = addTexts(events, group)
    const parts = [first, ...others].flatMap((position) => events[position]?.content?.parts ?? [])
    const ids = parts.flatMap(({ functionCall }) => functionCall?.id ?? [])
    const calls = events[first]
    if (!calls || ids.length < 2) continue
    arranged ??= events.map((event) => [event])
    arranged[first] = [withParts(calls, parts)]
    for (const position of others) arranged[position] = []
    joinResponses(arranged, calls, ids)
  }
  return arranged?.flat() ?? events
}

/**
 * AP661: puts the result at the end with which a run continues its turn. Such a run begins with a confirmation, which ADK hides from the
 * model, and other turns may have stored events after the result. The model would reply to those, or to a prompt of ADK's own.
 */
function endWithResult(events: Event[], invocationId: string): Event[] {
  const own = events.filter((event) => event.invocationId === invocationId)
  const { messageId } = own[0] ? readNotes(own[0]) : {}
  if (messageId === undefined || !own.every(isConfirmation)) return events
  const newest = findTurn(events, messageId)?.events.findLast(
    (event) => !isConfirmation(event) && (event.content?.parts ?? []).length > 0,
  )
  if (!newest || getFunctionResponses(newest).length === 0) return events
  return [...events.filter((event) => event !== newest), newest]
}

/** The calls of one model response. */
interface CallGroup {
  /** The positions of the events with the calls, in order. */
  readonly positions: number[]
  /** The calls that have no result so far. */
  readonly open: Set<string>
  /** When the model was called. Undefined for events of other programs, and for questions. */
  readonly startedAt: number | undefined
}

/** Finds the calls of each model response. ADK does not call a model again in a run while one of its calls is open. */
function groupCalls(events: readonly Event[]): ReadonlySet<CallGroup> {
  const groups = new Set<CallGroup>()
  const newest = new Map<string, CallGroup>()
  const byCall = new Map<string, CallGroup>()
  const ambiguous = new Set<CallGroup>()
  for (const [position, event] of events.entries()) {
    // A live run contains many messages.
    if (isMessage(event)) newest.clear()
    closeCalls(event, byCall)
    const calls = isModelOutput(event) ? getFunctionCalls(event) : []
    if (calls.length === 0) continue
    const { startedAt } = readNotes(event).model ?? {}
    const run = JSON.stringify(runOf(event))
    const group = findGroup(newest.get(run), startedAt)
    newest.set(run, group)
    groups.add(group)
    group.positions.push(position)
    for (const { id = '' } of calls) {
      // A model may use an id again. Only ADK's order says which response is whose then.
      const known = byCall.get(id)
      if (known) ambiguous.add(group).add(known)
      byCall.set(id, group)
      group.open.add(id)
    }
  }
  for (const group of ambiguous) groups.delete(group)
  return groups
}

/** Returns the group of a further event with calls. */
function findGroup(newest: CallGroup | undefined, startedAt: number | undefined): CallGroup {
  const isSame = startedAt !== undefined && newest?.startedAt === startedAt
  return newest && (isSame || newest.open.size > 0)
    ? newest
    : { positions: [], open: new Set(), startedAt }
}

/** Closes the calls that have a result in an event. */
function closeCalls(event: Event, byCall: ReadonlyMap<string, CallGroup>): void {
  const responses = getFunctionResponses(event)
  const { pending = [] } = responses.length > 0 ? readNotes(event) : {}
  for (const { id = '' } of responses) if (!pending.includes(id)) byCall.get(id)?.open.delete(id)
}

function isMessage({ author, content }: Event): boolean {
  const { parts = [] } = content ?? {}
  return author === 'user' && parts.some(({ functionResponse }) => functionResponse === undefined)
}

/** Adds the positions of the texts between the calls of a response. */
function addTexts(events: readonly Event[], { positions }: CallGroup): number[] {
  const [first = 0] = positions
  const between = events.slice(first, (positions.at(-1) ?? first) + 1)
  return between.flatMap((event, offset) =>
    isModelOutput(event) && isDeepStrictEqual(runOf(event), runOf(events[first] ?? event))
      ? first + offset
      : [],
  )
}

/** Returns the fields that all events of one model response share. */
function runOf({ invocationId, author, branch }: Event): readonly (string | undefined)[] {
  return [invocationId, author, branch]
}

/** Puts the newest response of each call into one event, at the position of the last one. */
function joinResponses(arranged: Event[][], calls: Event, ids: readonly string[]): void {
  const isOwn = ({ functionResponse }: Part): boolean => ids.includes(functionResponse?.id ?? '')
  const newest = new Map<string, Part>()
  let last: Event[] = []
  for (const events of arranged) {
    const [event] = events
    const { parts = [] } = event?.content ?? {}
    const own = parts.filter(isOwn)
    if (!event || own.length === 0) continue
    last = events
    for (const part of own) newest.set(part.functionResponse?.id ?? '', part)
    const others = parts.filter((part) => !isOwn(part))
    events.splice(0, 1, ...(others.length > 0 ? [withParts(event, others)] : []))
  }
  const parts = ids.flatMap((id) => newest.get(id) ?? [])
  last.push({ ...calls, content: { role: 'user', parts } })
}

function withParts(event: Event, parts: Part[]): Event {
  return { ...event, content: { ...event.content, parts } }
}
