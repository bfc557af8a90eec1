import type { InvocationContext, Context } from '@google/adk'
import { getFunctionCalls, getFunctionResponses } from '@google/adk'
import type { Content, Part } from '@google/genai'

import { isAdkRequest } from '../tool-call.ts'

/**
 * Assigns a run to the agent whose calls the user message responds to. ADK 2.0.0 picks the agent of the last event.
 * With streaming that is often a different one: the usage report of a parent follows all events of the sub-agent to
 * which it transferred.
 */
export function pickAgent(context: InvocationContext): void {
  const { events } = context.session
  const respondedIds = new Set(
    events.at(-1)?.content?.parts?.flatMap(({ functionResponse }) => functionResponse?.id ?? []),
  )
  const callEvent = events.find((event) =>
    event.content?.parts?.some(({ functionCall }) => respondedIds.has(functionCall?.id ?? '')),
  )
  const agent = context.agent?.rootAgent.findAgent(callEvent?.author ?? '')
  if (agent) context.agent = agent
}

/**
 * Whether an agent has transferred the conversation since it started. Call this before each call of its model. ADK
 * runs the target agent inside the step of the transferring agent, at any depth. When the target has finished, ADK
 * calls the models of the transferring agents again, and they would reply a second time.
 */
export function hasTransferred({ invocationContext, invocationId, agentName }: Context): boolean {
  const { events } = invocationContext.session
  const start = eventCounts.get(invocationContext)
  if (start === undefined) {
    eventCounts.set(invocationContext, events.length)
    return false
  }
  return events
    .slice(start)
    .some(
      ({ author, actions, invocationId: id }) =>
        id === invocationId &&
        author === agentName &&
        actions.transferToAgent !== undefined &&
        actions.transferToAgent !== agentName,
    )
}

/**
 * The number of events in the session when an agent started. ADK creates a context for each run of an agent, so an
 * agent that receives the conversation back is distinguished from its earlier run.
 */
const eventCounts = new WeakMap<InvocationContext, number>()

/**
 * Returns how the last step of an agent ended, if ADK 2.0.0 calls the model again although the agent has finished. Call this before
 * each call of the model.
 * - `result`: the result of a tool is the reply (`skipSummarization`). The usage report that follows hides that from ADK.
 * - `nothing`: the model has replied to the newest result without any content. After a resume, the result and the empty reply are
 *   events of one step, and ADK does not end a step that has a result but no text.
 */
export function findEnding({
  invocationContext,
  invocationId,
  agentName,
}: Context): 'result' | 'nothing' | undefined {
  const { events } = invocationContext.session
  const start = callStarts.get(invocationContext)
  callStarts.set(invocationContext, events.length)
  if (start === undefined) return undefined
  const own = events
    .slice(start)
    .filter((event) => event.invocationId === invocationId && event.author === agentName)
  const results = own.filter((event) => getFunctionResponses(event).length > 0)
  // The usage report of a call that had results follows these results.
  if (results.length > 0)
    return results.at(-1)?.actions.skipSummarization === true ? 'result' : undefined
  const last = own.at(-1)
  // A state change of a callback is also an event without content. Only events of a model have a finish reason.
  const isEmpty = last?.finishReason !== undefined && (last.content?.parts ?? []).length === 0
  return isEmpty ? 'nothing' : undefined
}

/** The number of events in the session when an agent last called its model. */
const callStarts = new WeakMap<InvocationContext, number>()

/**
 * Whether the last step of an agent ended with a call that waits for a client. ADK 2.0.0 calls the model again after a streamed
 * long-running call, because the usage report or the result of another call follows it. Gemini rejects a conversation with an
 * unanswered call.
 */
export function hasOpenCall(context: Context, contents: readonly Content[]): boolean {
  return endsOnCall(contents) || endsOnRequest(context)
}

/** Whether a call of the last response of the model has no response. Other calls of the response may have one. */
function endsOnCall(contents: readonly Content[]): boolean {
  const index = contents.findLastIndex(({ parts = [] }) => parts.some(isCall))
  const after = contents.slice(index + 1).flatMap(({ parts = [] }) => parts)
  const calls = (contents[index]?.parts ?? []).filter(isCall)
  const responses = after.filter(({ functionResponse }) => functionResponse !== undefined)
  const isOver = after.length > responses.length
  return !isOver && responses.length < calls.length
}

function isCall({ functionCall }: Part): boolean {
  return functionCall !== undefined
}

/** Whether the last event of the agent is one of ADK's own requests to the client, which ADK hides from the model. */
function endsOnRequest({ invocationContext, invocationId, agentName }: Context): boolean {
  const last = invocationContext.session.events.findLast(
    (event) => event.invocationId === invocationId && (event.content?.parts ?? []).length > 0,
  )
  if (last?.author !== agentName) return false
  return getFunctionCalls(last).some(isAdkRequest)
}
