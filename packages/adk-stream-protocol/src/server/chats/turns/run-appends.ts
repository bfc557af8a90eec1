import type { AppendEventRequest, BaseSessionService, Event } from '@google/adk'

import { intercept } from '../../../agent/adk-workarounds/session-services.ts'
import type { PartialReply } from '../../../agent/history/interrupted-turn.ts'
import { type AppChatRef, toChatKey } from '../../../shared/chat-ref.ts'
import { keepNewest } from '../../../shared/collections.ts'

interface Appends {
  /** The newest event of the agent that ADK has tried to store. */
  last: Event | undefined
  readonly pending: Set<Promise<unknown>>
}

const MAX_CHATS = 10_000

/**
 * What ADK stores during runs. A turn that is stopped does not wait for its run, so it may not know that the whole reply is being stored.
 * The streamed text must then not be stored as well.
 */
export class RunAppends {
  readonly #chats = new Map<string, Appends>()

  /** Returns the session service for a runner. */
  observe(sessions: BaseSessionService): BaseSessionService {
    const appendEvent = async (request: AppendEventRequest): Promise<Event> => {
      const { event } = request
      if (event.partial || event.author === 'user') return sessions.appendEvent(request)
      const appends = this.#of(request)
      appends.last = event
      const appended = sessions.appendEvent(request)
      appends.pending.add(appended)
      try {
        return await appended
      } finally {
        appends.pending.delete(appended)
      }
    }
    return intercept(sessions, { appendEvent })
  }

  /** Waits until nothing is being stored in a chat. Returns the newest event of the agent that ADK has tried to store since the last call. */
  async settled(chat: AppChatRef): Promise<Event | undefined> {
    const key = toChatKey(chat)
    const appends = this.#chats.get(key)
    if (!appends) return undefined
    while (appends.pending.size > 0) await Promise.allSettled(appends.pending)
    this.#chats.delete(key)
    return appends.last
  }

  forget(chat: AppChatRef): void {
    this.#chats.delete(toChatKey(chat))
  }

  #of({ session }: AppendEventRequest): Appends {
    const { appName, userId: principalId, id: chatId } = session
    const key = toChatKey({ appName, principalId, chatId })
    const known = this.#chats.get(key)
    if (known) return known
    const appends: Appends = { last: undefined, pending: new Set() }
    this.#chats.set(key, appends)
    keepNewest(this.#chats, MAX_CHATS)
    return appends
  }
}

/** Whether an event contains the text and reasoning that were streamed before it. */
export function repeats({ content }: Event, { parts }: PartialReply): boolean {
  return parts.length > 0 && textOf(content?.parts ?? []).startsWith(textOf(parts))
}

function textOf(parts: readonly { readonly text?: string }[]): string {
  return parts.map(({ text = '' }) => text).join('')
}
