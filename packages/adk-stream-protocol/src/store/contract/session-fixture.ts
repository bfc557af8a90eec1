import { type BaseSessionService, createEvent, type Event, type Session } from '@google/adk'

export const key = { appName: 'demo', userId: 'hanako', sessionId: 'chat-1' }

/** A user event with one text part. */
export function textEvent(id: string, fields: Partial<Event> = {}): Event {
  return createEvent({
    id,
    author: 'user',
    timestamp: 1_000,
    content: { role: 'user', parts: [{ text: `text of ${id}` }] },
    ...fields,
  })
}

/** An event that changes state. */
export function deltaEvent(id: string, stateDelta: Record<string, unknown>): Event {
  const event = textEvent(id)
  event.actions.stateDelta = stateDelta
  return event
}

/** Reads a session that must exist. */
export async function readSession(service: BaseSessionService, request = key): Promise<Session> {
  const session = await service.getSession(request)
  if (session === undefined) throw new Error(`no session ${request.sessionId}`)
  return session
}

export function idsOf(session: Session): string[] {
  return session.events.map((event) => event.id)
}
