import type { Event, Session } from '@google/adk'
import { InMemorySessionService } from '@google/adk'

import { defer } from '../../support/agents.ts'

/** Sessions that delay a decision until they are released: a resumed run of ADK stores the confirmation first. */
export class HeldSessions extends InMemorySessionService {
  /** Resolves when ADK stores the confirmation. */
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
