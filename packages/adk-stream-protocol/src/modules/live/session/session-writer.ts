import type { BaseSessionService, Event, InvocationContext, Session } from '@google/adk'

import { canAppendResponse } from '../../../agent/history/cut-events.ts'
import { endUncontinued } from '../../../agent/tree/interrupted-turn.ts'
import { containsCalls, hasFinalResponse, responseIds } from '../../../agent/events/event-calls.ts'
import { SparseSet } from '../../../shared/collections.ts'
import { readError } from '../../../store/read-error.ts'

/** Appends events to the ADK session of a live run, in addition to those that ADK appends. */
export class SessionWriter {
  #context: InvocationContext | undefined
  /** The ids of events that are being written. */
  readonly #writing = new SparseSet<string>()

  /** Sets the context when the run starts. */
  start(context: InvocationContext): void {
    this.#context = context
  }

  /** The context of the run. Undefined before it starts. */
  get context(): InvocationContext | undefined {
    return this.#context
  }

  /** Whether events are being written. */
  get isWriting(): boolean {
    return this.#writing.size > 0
  }

  /** The id of the last event with content that the run knows. */
  get lastEventId(): string | undefined {
    return this.#context?.session.events.findLast(
      ({ content }) => (content?.parts ?? []).length > 0,
    )?.id
  }

  /** Returns the arguments of a stored call. Returns undefined if the call is not stored. */
  argsOf(toolCallId: string): Record<string, unknown> | undefined {
    for (const { content } of this.#context?.session.events.toReversed() ?? [])
      for (const { functionCall } of content?.parts ?? [])
        if (functionCall?.id === toolCallId) return functionCall.args ?? {}
    return undefined
  }

  /** Whether the chat still holds calls. They may have been removed after the run ended. */
  async holdsCalls(toolCallIds: readonly string[]): Promise<boolean> {
    const stored = await this.#readStored()
    return stored !== undefined && containsCalls(stored.events, toolCallIds)
  }

  /** Whether the final response of a call is stored. */
  hasResponse(toolCallId: string): boolean {
    const { events } = this.#context?.session ?? { events: [] }
    return events.some((event) => hasFinalResponse(event, toolCallId))
  }

  /** Whether the final response of a call is stored, also by another process. */
  async isAnswered(toolCallId: string): Promise<boolean> {
    const stored = await this.#readStored()
    return stored?.events.some((event) => hasFinalResponse(event, toolCallId)) === true
  }

  async #readStored(): Promise<Session | undefined> {
    const { session, sessionService } = this.#context ?? {}
    if (!session) return undefined
    const { appName, userId, id: sessionId } = session
    return sessionService?.getSession({ appName, userId, sessionId })
  }

  async append(event: Event): Promise<void> {
    await this.#write(event, async (service, session) => {
      await service.appendEvent({ session, event })
    })
  }

  /** Appends an event of calls. A result is not lost, although another process has taken the run over. */
  async appendResult(event: Event): Promise<void> {
    try {
      await this.append(event)
    } catch (error) {
      if (readError(error).code !== 'turn-lost' || responseIds(event).length === 0) throw error
      await this.appendResponse(event)
    }
  }

  /** AP1948: the next message starts a turn. */
  async endUncontinued(): Promise<void> {
    const { sessionService, session } = this.#context ?? {}
    if (session && sessionService) await endUncontinued(sessionService, session)
  }

  /** Appends an event of calls if the chat still holds them. They may have been removed after the run ended. */
  async appendResponse(event: Event, calls: readonly string[] = responseIds(event)): Promise<void> {
    await this.#write(event, async (service, session) => {
      if (canAppendResponse(service)) {
        await service.appendResponse({ session, event }, calls)
        return
      }
      // The host's own session service has no transaction for both steps.
      if (await this.holdsCalls(calls)) await service.appendEvent({ session, event })
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

  /** Whether the run knows all events of its chat. Another mode or another process may have continued the chat. */
  async isCurrent(): Promise<boolean> {
    const { session, sessionService, invocationId } = this.#context ?? {}
    if (!session || !sessionService) return true
    const { appName, userId, id: sessionId, events } = session
    const config = { numRecentEvents: 1 }
    const stored = await sessionService.getSession({ appName, userId, sessionId, config })
    if (!stored) return false
    const last = stored.events.at(-1)
    // An event of this run may be stored before it is in `events`.
    if (!last || last.invocationId === invocationId) return true
    return this.#writing.has(last.id) || events.findLast(({ id }) => id === last.id) !== undefined
  }
}
