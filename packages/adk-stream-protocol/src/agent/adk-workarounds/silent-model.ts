import type { Context } from '@google/adk'

/**
 * Whether the model has already replied to the newest result without any content. ADK 2.0.0 would call the model
 * again: after a resume, the result and the empty reply are events of one step, and ADK does not end a step that has
 * a result but no text.
 */
export function hasRepliedWithNothing({
  invocationContext,
  invocationId,
  agentName,
}: Context): boolean {
  const last = invocationContext.session.events.at(-1)
  if (last?.invocationId !== invocationId || last.author !== agentName) return false
  // A state change of a callback is also an event without content. Only events of a model have a finish reason.
  return last.finishReason !== undefined && (last.content?.parts ?? []).length === 0
}
