import type { Context, InvocationContext } from '@google/adk'

/**
 * Tells which agents have handed the conversation to another one. ADK runs the other agent inside the step of the one that transferred,
 * at any depth, and asks each of them again when it comes back to it: they would answer what has been answered.
 */
export class AgentTransfers {
  /**
   * How many events the session had when an agent began. ADK makes a context for each time that an agent is run, so an agent that is given
   * the conversation back is told from the same agent that handed it over before.
   */
  readonly #begun = new WeakMap<InvocationContext, number>()

  /** Whether an agent has transferred since it began; to be asked before each call of its model. */
  has({ invocationContext, invocationId, agentName }: Context): boolean {
    const { events } = invocationContext.session
    const start = this.#begun.get(invocationContext)
    if (start === undefined) {
      this.#begun.set(invocationContext, events.length)
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
