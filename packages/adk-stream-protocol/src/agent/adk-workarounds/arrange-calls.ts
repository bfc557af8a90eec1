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

import { readNotes } from '../history/event-notes.ts'
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
    const events = arrangeCalls(context.session.events)
    const session = Object.create(context.session, { events: { value: events } }) as Session
    const view = Object.create(context, { session: { value: session } }) as InvocationContext
    return CONTENT_REQUEST_PROCESSOR.runAsync(view, request)
  },
}

/** Returns the events with the calls of each model response joined, and their responses joined in the same order. */
function arrangeCalls(events: readonly Event[]): Event[] {
  const arranged = events.map((event) => [event])
  for (const group of groupCalls(events)) {
    const [first = 0, ...others] = addTexts(events, group)
    const parts = [first, ...others].flatMap((position) => events[position]?.content?.parts ?? [])
    const ids = parts.flatMap(({ functionCall }) => functionCall?.id ?? [])
    const calls = events[first]
    if (!calls || ids.length < 2) continue
    arranged[first] = [withParts(calls, parts)]
    for (const position of others) arranged[position] = []
    joinResponses(arranged, calls, ids)
  }
  return arranged.flat()
}

/** The positions of the events with the calls of one model response. */
type CallGroup = number[]

function groupCalls(events: readonly Event[]): ReadonlySet<CallGroup> {
  const byResponse = new Map<string, CallGroup>()
  const byCall = new Map<string, CallGroup>()
  const ambiguous = new Set<CallGroup>()
  for (const [position, event] of events.entries()) {
    const calls = isModelOutput(event) ? getFunctionCalls(event) : []
    if (calls.length === 0) continue
    const { startedAt = event.id } = readNotes(event).model ?? {}
    const key = JSON.stringify([startedAt, ...runOf(event)])
    const group = byResponse.get(key) ?? []
    byResponse.set(key, group)
    group.push(position)
    for (const { id = '' } of calls) {
      // A model may use an id again. Only ADK's order says which response is whose then.
      const known = byCall.get(id)
      if (known) ambiguous.add(group).add(known)
      byCall.set(id, group)
    }
  }
  joinAnswered(events, byCall)
  const groups = new Set(byCall.values())
  for (const group of ambiguous) groups.delete(group)
  return groups
}

/** Joins groups whose calls one event answers: ADK does that only for the calls of one response. Events of other programs have no times. */
function joinAnswered(events: readonly Event[], byCall: Map<string, CallGroup>): void {
  for (const event of events) {
    const answered = getFunctionResponses(event).map(({ id = '' }) => byCall.get(id) ?? [])
    const [first = [], ...others] = new Set(answered)
    for (const other of others) {
      if (!isSameRun(events[first[0] ?? -1], events[other[0] ?? -1])) continue
      first.push(...other)
      for (const [id, group] of byCall) if (group === other) byCall.set(id, first)
    }
  }
}

/** Adds the positions of the texts between the calls of a response. */
function addTexts(events: readonly Event[], group: CallGroup): number[] {
  const first = Math.min(...group)
  const between = events.slice(first, Math.max(...group) + 1)
  return between.flatMap((event, offset) =>
    isModelOutput(event) && isSameRun(event, events[first]) ? first + offset : [],
  )
}

/** What the events of one model response have in common. */
function runOf({ invocationId, author, branch }: Event): readonly (string | undefined)[] {
  return [invocationId, author, branch]
}

function isSameRun(one: Event | undefined, other: Event | undefined): boolean {
  return one !== undefined && other !== undefined && isDeepStrictEqual(runOf(one), runOf(other))
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
