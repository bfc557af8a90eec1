import { randomUUID } from 'node:crypto'

import type { ChatRef } from '../../../shared/chat-ref.ts'
import type { TurnRegistry } from '../../../turns/turn-registry.ts'

/** Changes what is stored of a chat while no turn runs in it, in any process. Throws `turn-running` otherwise. */
export type ChangeChat = (chat: ChatRef, change: () => Promise<void>) => Promise<void>

/** Returns a function that locks a chat for a change. A live session reads the chat again before its next message. */
export function createChangeChat(turns: TurnRegistry): ChangeChat {
  return async (chat, change) => {
    const { settled } = await turns.start(chat, randomUUID(), {
      onlyIfFree: true,
      // It writes no message that other processes could read.
      isReplay: true,
      prepare: change,
      run: async ({ log }) => log.end(),
    })
    await settled
  }
}
