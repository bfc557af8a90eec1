import type { InvocationContext } from '@google/adk'

/**
 * Gives a run to the agent that made the calls which its message answers. ADK 2.0.0 takes the agent of the last event, which in a
 * stream is often another one: the usage report of a parent that transferred comes after all that its sub-agent did.
 */
export function pickAgent(context: InvocationContext): void {
  const { events } = context.session
  const answered = new Set(
    events.at(-1)?.content?.parts?.flatMap(({ functionResponse }) => functionResponse?.id ?? []),
  )
  const asked = events.find((event) =>
    event.content?.parts?.some(({ functionCall }) => answered.has(functionCall?.id ?? '')),
  )
  const agent = context.agent?.rootAgent.findAgent(asked?.author ?? '')
  if (agent) context.agent = agent
}
