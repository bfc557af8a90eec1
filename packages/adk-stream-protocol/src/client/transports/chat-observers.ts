import type { ChatObserver } from './chat-observer.ts'

/** Who looks after a chat: the newest of those who came, or the one of a `Chat` of that id. */
export type FindObserver = (chatId: string, chat?: object) => ChatObserver | undefined

/** Who looks after which chat. */
export class ChatObservers {
  readonly #keepers = new Map<string, ChatObserver[]>()

  readonly of: FindObserver = (chatId, chat) =>
    this.#keepers.get(chatId)?.findLast((keeper) => chat === undefined || keeper.chat === chat)

  /** Give back takes this one away, and no other. */
  keep(chatId: string, keeper: ChatObserver): () => void {
    this.#keepers.set(chatId, [...(this.#keepers.get(chatId) ?? []), keeper])
    return () => {
      const left = this.#keepers.get(chatId)?.filter((other) => other !== keeper) ?? []
      if (left.length > 0) this.#keepers.set(chatId, left)
      else this.#keepers.delete(chatId)
    }
  }
}
