import type { AppendEventRequest, BaseSessionService, Event } from '@google/adk'

import { interceptAppend } from '../../agent/adk-workarounds/intercept-append.ts'
import type { Ledger } from '../../approvals/ledger.ts'
import { ProtocolError } from '../../protocol/errors.ts'

/**
 * Wraps the host's session service: an append is rejected if another process has taken over the chat. The store's own session service
 * checks this in the transaction of the append. Here the check and the append are two steps, so a takeover between them is not noticed.
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
  return interceptAppend(sessions, appendEvent)
}
