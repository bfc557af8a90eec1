import type { Context, InvocationContext } from '@google/adk'

/**
 * Tracks which agents have transferred the conversation. ADK runs the target agent inside the step of the
 * transferring agent, at any depth. When the target has finished, ADK calls the models of the transferring agents
 * again, and they would reply a second time.
 */
export class AgentTransfers {
  /**
   * The number of events in the session when an agent started. ADK creates a context for each run of an agent, so an
   * agent that receives the conversation back is distinguished from its earlier run.
   */
  readonly #eventCounts = new WeakMap<InvocationContext, number>()

  /** Whether an agent has transferred since it started. Call this before each call of its model. */
  has({ invocationContext, invocationId, agentName }: Context): boolean {
    const { events } = invocationContext.session
    const start = this.#eventCounts.get(invocationContext)
    if (start === undefined) {
      this.#eventCounts.set(invocationContext, events.length)
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
}
