import type { AppendEventRequest, Event, ListSessionsResponse, Session } from '@google/adk'
import { BaseSessionService, createEvent, createSession } from '@google/adk'

import { readNotes } from '../agent/history/event-notes.ts'
import { renameAnsweredCalls } from '../agent/history/input-calls.ts'

interface NestedSessionOptions {
  /** The session of the chat, which contains the events of the nested one. */
  readonly session: Session
  /** The id of the nested session. */
  readonly id: string
  /** The state that the agent starts with. */
  readonly state: Record<string, unknown>
  /** Stores an event in the session of the chat. */
  readonly store: (event: Event) => Promise<void>
}

/**
 * The session of an agent that is used as a tool. Its events are notes on events of the chat's session, so they are stored, locked,
 * rewound and deleted together with the chat.
 */
export class NestedSession extends BaseSessionService {
  /** Has the ids of the chat, so that tools inside see the same chat, user and artifacts. */
  readonly session: Session
  readonly #store: (event: Event) => Promise<void>

  constructor({ session, id, state, store }: NestedSessionOptions) {
    super()
    this.#store = store
    const { appName, userId, id: chatId, lastUpdateTime } = session
    this.session = createSession({ id: chatId, appName, userId, state, events: [], lastUpdateTime })
    for (const event of readNestedEvents(session.events, id)) {
      Object.assign(this.session.state, event.actions.stateDelta)
      this.session.events.push(event)
    }
    renameAnsweredCalls(this.session.events)
  }

  override async appendEvent(request: AppendEventRequest): Promise<Event> {
    const { event } = request
    if (event.partial) return event
    await this.#store(event)
    const appended = await super.appendEvent(request)
    renameAnsweredCalls(this.session.events, [appended])
    return appended
  }

  override getSession(): Promise<Session> {
    return Promise.resolve(this.session)
  }

  override createSession(): Promise<Session> {
    return Promise.resolve(this.session)
  }

  override listSessions(): Promise<ListSessionsResponse> {
    const sessions = [this.session]
    return Promise.resolve({ sessions, page: 1, limit: 1, totalItems: 1, totalPages: 1 })
  }

  override async deleteSession(): Promise<void> {}
}

/** Returns the events of a nested session. They are copies, because ADK changes the events of a session. */
function readNestedEvents(events: readonly Event[], id: string): Event[] {
  return events.flatMap((event) => {
    const { nested } = readNotes(event)
    return nested?.session === id ? [createEvent(structuredClone(nested.event))] : []
  })
}
