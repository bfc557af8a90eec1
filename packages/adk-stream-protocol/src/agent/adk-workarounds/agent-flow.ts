import type { InvocationContext, Context } from '@google/adk'

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
 * Whether the model has already replied to the newest result without any content. Call this before each call of the model. ADK 2.0.0
 * would call the model again: after a resume, the result and the empty reply are events of one step, and ADK does not end a step that
 * has a result but no text.
 */
export function hasRepliedWithNothing({
  invocationContext,
  invocationId,
  agentName,
}: Context): boolean {
  const { events } = invocationContext.session
  const result = events.findLast(({ content }) =>
    content?.parts?.some(({ functionResponse }) => functionResponse),
  )?.id
  // If there is a new result, the empty event after it is the usage report of the reply that made the call.
  const isRepliedTo =
    repliedResults.has(invocationContext) && repliedResults.get(invocationContext) === result
  repliedResults.set(invocationContext, result)
  const last = events.at(-1)
  if (!isRepliedTo || last?.invocationId !== invocationId || last.author !== agentName) return false
  // A state change of a callback is also an event without content. Only events of a model have a finish reason.
  return last.finishReason !== undefined && (last.content?.parts ?? []).length === 0
}

/** The event with the newest result when the model of an agent was last called. */
const repliedResults = new WeakMap<InvocationContext, string | undefined>()
