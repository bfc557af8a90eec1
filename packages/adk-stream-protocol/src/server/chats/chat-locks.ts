import { setTimeout as delay } from 'node:timers/promises'

import type { AppendEventRequest, BaseSessionService, Event } from '@google/adk'

import { interceptAppend } from '../../agent/adk-workarounds/intercept-append.ts'
import type { ApprovalChat } from '../../approvals/approval.ts'
import type { Ledger } from '../../approvals/ledger.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { LazyBackend } from './backend.ts'
import { toApprovalChat } from './backend.ts'
import type { Hold, TurnsOptions } from '../../turns/turns.ts'

/** How often a chat that another process holds is tried again. */
const RETRY_MS = 25

/** Takes chats for this process, so that no other one answers in them. */
export function lockChats(
  backend: LazyBackend,
  onError: (error: unknown) => void,
): TurnsOptions['hold'] {
  return async (chat, hold) => {
    const opened = await backend.get()
    const key = toApprovalChat(opened, chat)
    const token = await lockChat(opened.ledger, key, hold)
    // What cannot be released is lost by the lease; the turn has ended either way.
    return () => opened.ledger.unlockChat(key, token).catch(onError)
  }
}

async function lockChat(ledger: Ledger, chat: ApprovalChat, hold: Hold): Promise<string> {
  // A process that died gives its chats back when its lease ends; one that lives longer than this is busy.
  const giveUpAt = performance.now() + ledger.leaseMs * 2
  const holder = new LockHolder(ledger, chat)
  for (;;) {
    const token = await ledger.lockChat(chat, hold.background)
    if (token !== undefined) return token
    if (hold.signal.aborted) throw new ProtocolError('unavailable')
    if (hold.whileHeld === 'refuse' && (await holder.isAlive()))
      throw new ProtocolError('turn-running')
    if (performance.now() > giveUpAt) throw busy(hold)
    await delay(RETRY_MS)
  }
}

/** The process that holds a chat: whether it lives shows only by a sign that it gives while one looks. */
class LockHolder {
  readonly #ledger: Ledger
  readonly #chat: ApprovalChat
  #signAt: number | undefined

  constructor(ledger: Ledger, chat: ApprovalChat) {
    this.#ledger = ledger
    this.#chat = chat
  }

  /** Whether it lives and answers somebody; what goes on by itself is waited for. */
  async isAlive(): Promise<boolean> {
    const holder = await this.#ledger.holderOf(this.#chat)
    if (!holder) return false
    this.#signAt ??= holder.signAt
    return !holder.background && holder.signAt > this.#signAt
  }
}

function busy({ whileHeld }: Hold): ProtocolError {
  // An answer that finds no room is followed by the next sweep; a message is for the person to send again.
  return whileHeld === 'wait'
    ? new ProtocolError('unavailable', { retryAfterSeconds: 5 })
    : new ProtocolError('turn-running')
}

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
