import type { InvocationContext } from '@google/adk'

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
