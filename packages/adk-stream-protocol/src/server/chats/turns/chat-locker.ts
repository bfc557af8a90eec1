import { setTimeout as delay } from 'node:timers/promises'

import type { AppendEventRequest, BaseSessionService, Event } from '@google/adk'

import { intercept } from '../../../agent/adk-workarounds/session-services.ts'
import { responseIds } from '../../../agent/events/event-calls.ts'
import { chatOf } from '../../../agent/tool-call.ts'
import type { Ledger } from '../../../approvals/ledger.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import {
  type ChatLockRequest,
  type RunsOn,
  type TurnRegistryOptions,
  RepeatedMessageError,
} from '../../../turns/turn-registry.ts'
import type { LazyBackend } from '../backend.ts'
import { toAppChat } from '../backend.ts'
import type { AppChatRef, ChatRef } from '../../../shared/chat-ref.ts'

/** The interval between attempts to lock a chat that another process holds. */
export const LOCK_RETRY_MS = 25

/** Returns a function that locks a chat for this process, so that no other process runs a turn in it. */
export function createChatLocker(
  backend: LazyBackend,
  stopUnwatched: (chat: ChatRef, userMessageId: string | undefined) => Promise<RunsOn>,
  onError: (error: unknown) => void,
): TurnRegistryOptions['lockChat'] {
  return async (chat, request) => {
    const opened = await backend.get()
    const key = toAppChat(opened, chat)
    const token = await lockChat(opened.ledger, key, {
      ...request,
      stopUnwatched: () => stopUnwatched(chat, request.repliesTo).catch(() => true),
    })
    // The turn has ended. If the lock cannot be released, a sweep releases it (LG29), or it expires with the lease.
    return () => opened.ledger.locks.unlock(key, token).catch(onError)
  }
}

async function lockChat(
  ledger: Ledger,
  chat: AppChatRef,
  request: ChatLockRequest & { readonly stopUnwatched: () => Promise<RunsOn> },
): Promise<string> {
  // The lock of a crashed process expires with its lease. A process that holds it longer than this is busy.
  const lastTryAt = performance.now() + ledger.leaseMs * 2
  const isHeldByRequest = watchHolder(ledger, chat)
  /** What the server that has the lock says of its turn. */
  let runsOn: RunsOn = false
  for (;;) {
    const token = await ledger.locks.lock(chat, request)
    if (token !== undefined) return token
    if (request.signal.aborted) throw new ProtocolError('unavailable')
    const reply = await request.findReply?.()
    if (reply !== undefined) throw new RepeatedMessageError(reply)
    if (request.onLocked === 'refuse-at-once') throw new ProtocolError('turn-running')
    // TU6 and TU901 hold across servers. A turn of the same message has not stored it yet: its reply is found when it has.
    if (request.onLocked !== 'wait' && runsOn === false) runsOn = await request.stopUnwatched()
    if (request.onLocked === 'refuse' && runsOn === true && (await isHeldByRequest()))
      throw new ProtocolError('turn-running')
    if (performance.now() > lastTryAt) throw busyError(request)
    await delay(LOCK_RETRY_MS)
  }
}

/**
 * Returns a function that checks whether the process that holds a chat lock is alive and runs a turn that a client requested. A process is
 * alive if it renews its lease between two checks.
 */
function watchHolder({ locks }: Ledger, chat: AppChatRef): () => Promise<boolean> {
  let firstSeenAt: number | undefined
  return async () => {
    const holder = await locks.findHolder(chat)
    if (!holder) return false
    firstSeenAt ??= holder.lastSeenAt
    return !holder.background && holder.lastSeenAt > firstSeenAt
  }
}

function busyError({ onLocked }: ChatLockRequest): ProtocolError {
  // The next sweep retries a response. The user retries a message.
  return onLocked === 'wait'
    ? new ProtocolError('unavailable', { retryAfterSeconds: 5 })
    : new ProtocolError('turn-running')
}

/**
 * Wraps the application's session service: an append is rejected if another process has taken over the chat. The store's own session service
 * checks this in the transaction of the append. Here the check and the append are two steps, so a takeover between them is not noticed.
 */
export function fenceSessions<Sessions extends BaseSessionService>(
  sessions: Sessions,
  ledger: Ledger,
): Sessions {
  const appendEvent = async (request: AppendEventRequest): Promise<Event> => {
    const { session, event } = request
    const isResponse = responseIds(event).length > 0
    if (!event.partial && !(await ledger.locks.stillHolds(chatOf(session), { isResponse })))
      throw new ProtocolError('turn-lost')
    return sessions.appendEvent(request)
  }
  return intercept(sessions, { appendEvent })
}
