import type { Context } from '@google/adk'

/** Gives a call of ADK what the tool did by another context of the same call: its changes of state, its artifacts, where it leads. */
export function mergeContext(adopter: Context, { actions, invocationContext }: Context): void {
  const { stateDelta, artifactDelta, requestedAuthConfigs, requestedToolConfirmations, ...rest } =
    actions
  // Not into the delta alone: the next call of this run reads what this one has set.
  for (const [key, value] of Object.entries(stateDelta)) adopter.state.set(key, value)
  Object.assign(adopter.actions.artifactDelta, artifactDelta)
  Object.assign(adopter.actions.requestedAuthConfigs, requestedAuthConfigs)
  Object.assign(adopter.actions.requestedToolConfirmations, requestedToolConfirmations)
  Object.assign(adopter.actions, rest)
  if (invocationContext.endInvocation) adopter.invocationContext.endInvocation = true
}
