import type { ChatRef } from '../../../shared/chat-ref.ts'
import type { ChatEvents } from '../../../turns/chat-events.ts'
import type { LiveRuns } from '../live-runs.ts'
import type { TurnService } from '../turns/turn-service.ts'

export interface ShowStoredParts {
  readonly events: Pick<ChatEvents, 'turnStarted' | 'chatChanged'>
  readonly runs: Pick<LiveRuns, 'hasListeners' | 'show'> | undefined
  readonly turnService: Pick<TurnService, 'replay'>
}

/**
 * Notifies the clients of this process that a message has changed although no turn of this process has streamed the change. Feeds report a
 * turn, and clients that watch the chat on a socket receive the whole message, unless `isRead` says that they read it by a request.
 */
export async function showStored(
  { events, runs, turnService }: ShowStoredParts,
  chat: ChatRef,
  { messageId, isRead = false }: { readonly messageId: string; readonly isRead?: boolean },
): Promise<void> {
  events.turnStarted(chat, messageId)
  events.chatChanged(chat)
  if (isRead || runs?.hasListeners(chat) !== true) return
  runs.show(chat, await turnService.replay(chat, messageId))
}
