import type { Context } from '@google/adk'

/**
 * Whether the model was asked about the newest result already and said nothing. ADK 2.0.0 asks once more then: when it goes on
 * after an answer, the result and the model's silence are events of one step, and a step with a result is not over without words.
 */
export function hasRepliedWithNothing({
  invocationContext,
  invocationId,
  agentName,
}: Context): boolean {
  const last = invocationContext.session.events.at(-1)
  if (last?.invocationId !== invocationId || last.author !== agentName) return false
  // What a callback changes in the state is an event without words as well; only a model's has a reason to end.
  return last.finishReason !== undefined && (last.content?.parts ?? []).length === 0
}
