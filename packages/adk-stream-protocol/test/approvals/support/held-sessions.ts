import type { Event, Session } from '@google/adk'
import { InMemorySessionService } from '@google/adk'

import { defer } from '../../support/agents.ts'

/** Sessions that keep a decision from reaching ADK until they are let: a run that goes on stores the answer first. */
export class HeldSessions extends InMemorySessionService {
  /** Resolves when ADK has come as far as the answer. */
  readonly reached = defer()
  readonly release = defer()

  override async appendEvent(request: { session: Session; event: Event }): Promise<Event> {
    if (isConfirmation(request.event)) {
      this.reached.resolve()
      await this.release.promise
    }
    return super.appendEvent(request)
  }
}

function isConfirmation({ author, content }: Event): boolean {
  const parts = content?.parts ?? []
  return author === 'user' && parts.some(({ functionResponse }) => functionResponse !== undefined)
}
