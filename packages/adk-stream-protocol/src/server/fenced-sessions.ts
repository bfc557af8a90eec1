import type { AppendEventRequest, BaseSessionService, Event } from '@google/adk'

import type { Ledger } from '../approvals/ledger.ts'
import { ProtocolError } from '../protocol/errors.ts'

/**
 * A session service of the host's that is asked to store nothing for a turn whose chat another process has taken over. The store's
 * own sessions check that in the transaction of the append; others are asked right after the check, which leaves a moment.
 */
export function fenceSessions<Sessions extends BaseSessionService>(
  sessions: Sessions,
  ledger: Ledger,
): Sessions {
  const appendEvent = async (request: AppendEventRequest): Promise<Event> => {
    const { appName, userId: principalId, id: chatId } = request.session
    const chat = { appName, principalId, chatId }
    if (!request.event.partial && !(await ledger.stillHolds(chat)))
      throw new ProtocolError('turn-lost')
    return sessions.appendEvent(request)
  }
  return new Proxy(sessions, {
    get(target, name) {
      if (name === 'appendEvent') return appendEvent
      const value: unknown = Reflect.get(target, name)
      // Its private fields are those of the service, and not of what stands before it.
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
