import type { Event, InvocationContext, LlmAgent, LlmRequest, Session } from '@google/adk'
import {
  BaseLlmRequestProcessor,
  CONTENT_REQUEST_PROCESSOR,
  getFunctionCalls,
  getFunctionResponses,
  isLlmAgent,
} from '@google/adk'

import { findTurn } from '../history/replay-turn.ts'
import { findRun, untilStored } from './workflow-run.ts'

/** Makes the model of an agent that is a node read what the session of its own turn contains. */
export function controlRequests({ requestProcessors }: LlmAgent): void {
  if (requestProcessors.some((processor) => processor instanceof StoredFirst)) return
  requestProcessors.unshift(new StoredFirst())
  const index = requestProcessors.indexOf(CONTENT_REQUEST_PROCESSOR)
  if (index >= 0) requestProcessors.splice(index, 1, new TurnContents())
}

/** Lets an agent wait until its earlier events are stored. ADK 2.0.0 reads the session before that. */
class StoredFirst extends BaseLlmRequestProcessor {
  // oxlint-disable-next-line require-yield -- It only waits.
  async *runAsync(context: InvocationContext): AsyncGenerator<Event, void> {
    await untilStored(context)
  }
}

/** Hides the turns that started while an agent waited, if the agent reads only the current turn. */
class TurnContents extends BaseLlmRequestProcessor {
  async *runAsync(context: InvocationContext, request: LlmRequest): AsyncGenerator<Event, void> {
    // ADK runs resumed calls in the step in which the model reads their results.
    await untilStored(context)
    const { agent } = context
    const messageId = findRun(context)?.messageId
    const isAlone = isLlmAgent(agent) && agent.includeContents === 'none'
    const own =
      messageId !== undefined && isAlone ? viewTurn(context, messageId, agent.name) : context
    yield* CONTENT_REQUEST_PROCESSOR.runAsync(own, request)
  }
}

/**
 * Returns a context with the events of one turn. Responses from outside are events of the agent itself: ADK would leave out everything
 * before a response of the user, also the input of the agent. Responses to calls of other agents are left out.
 */
function viewTurn(
  context: InvocationContext,
  messageId: string,
  agentName: string,
): InvocationContext {
  const { session } = context
  const turn = findTurn(session.events, messageId)?.events ?? []
  const calls = turn.flatMap((event) =>
    event.author === agentName && event.branch === context.branch ? getFunctionCalls(event) : [],
  )
  const ids = new Set(calls.map(({ id }) => id))
  const isOwn = (event: Event): boolean => getFunctionResponses(event).some(({ id }) => ids.has(id))
  const events = turn.flatMap((event) => {
    if (isOwn(event)) return { ...event, author: agentName }
    const isForeign = event.author === 'user' && getFunctionResponses(event).length > 0
    return isForeign ? [] : event
  })
  const value = Object.create(session, { events: { value: events } }) as Session
  return Object.create(context, { session: { value } }) as InvocationContext
}
