import type { Event, InvocationContext } from '@google/adk'

import { answersKnownCalls } from '../agent/history/cut-events.ts'

/** The ADK session of a live run, into which the run writes beside ADK. */
export class RunSession {
  #context: InvocationContext | undefined
  /** Events that are being written. */
  readonly #writing = new Set<string>()

  /** The run has begun. */
  begin(context: InvocationContext): void {
    this.#context = context
  }

  async append(event: Event): Promise<void> {
    const { sessionService, session } = this.#context ?? {}
    if (!session) return
    this.#writing.add(event.id)
    try {
      await sessionService?.appendEvent({ session, event })
    } finally {
      this.#writing.delete(event.id)
    }
  }

  /** Whether the chat still holds the calls that an event answers: they may have been taken back when the run had ended. */
  async holdsCallsOf(event: Event): Promise<boolean> {
    const { session, sessionService } = this.#context ?? {}
    if (!session) return false
    const { appName, userId, id: sessionId } = session
    const stored = await sessionService?.getSession({ appName, userId, sessionId })
    return stored !== undefined && answersKnownCalls(event, stored.events)
  }

  /** Whether the run knows all that its chat holds: the chat may have gone on in another mode, or elsewhere. */
  async isCurrent(): Promise<boolean> {
    const { session, sessionService, invocationId } = this.#context ?? {}
    if (!session || !sessionService) return true
    const { appName, userId, id: sessionId, events } = session
    const config = { numRecentEvents: 1 }
    const stored = await sessionService.getSession({ appName, userId, sessionId, config })
    if (!stored) return false
    const last = stored.events.at(-1)
    // What is written by this run, or for it, may be there before it is known here.
    if (!last || last.invocationId === invocationId) return true
    return this.#writing.has(last.id) || events.findLast(({ id }) => id === last.id) !== undefined
  }
}
