import type { BaseSessionService, Event, InvocationContext, Session } from '@google/adk'

import { appendsAnswers } from '../agent/history/answer-appender.ts'
import { answersKnownCalls, responseIds } from '../agent/history/cut-events.ts'

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
    await this.#write(event, async (service, session) => {
      await service.appendEvent({ session, event })
    })
  }

  /** Appends an event if the chat still holds the calls that it answers: they may have been removed when the run had ended. */
  async appendAnswer(event: Event): Promise<void> {
    const calls = responseIds(event)
    await this.#write(event, async (service, session) => {
      if (appendsAnswers(service)) {
        await service.appendAnswer({ session, event }, calls)
        return
      }
      // A session service of the host has no transaction for both steps.
      const { appName, userId, id: sessionId } = session
      const stored = await service.getSession({ appName, userId, sessionId })
      if (stored && answersKnownCalls(event, stored.events))
        await service.appendEvent({ session, event })
    })
  }

  async #write(
    event: Event,
    write: (service: BaseSessionService, session: Session) => Promise<void>,
  ): Promise<void> {
    const { sessionService, session } = this.#context ?? {}
    if (!session || !sessionService) return
    this.#writing.add(event.id)
    try {
      await write(sessionService, session)
    } finally {
      this.#writing.delete(event.id)
    }
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
