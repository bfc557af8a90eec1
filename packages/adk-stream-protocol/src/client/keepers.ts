import type { ChatKeeper } from './chat-keeper.ts'

/** Who looks after a chat: the newest of those who came, or the one of a `Chat` of that id. */
export type KeeperOf = (chatId: string, chat?: object) => ChatKeeper | undefined

/** Who looks after which chat. */
export class Keepers {
  readonly #keepers = new Map<string, ChatKeeper[]>()

  readonly of: KeeperOf = (chatId, chat) =>
    this.#keepers.get(chatId)?.findLast((keeper) => chat === undefined || keeper.chat === chat)

  /** Give back takes this one away, and no other. */
  keep(chatId: string, keeper: ChatKeeper): () => void {
    this.#keepers.set(chatId, [...(this.#keepers.get(chatId) ?? []), keeper])
    return () => {
      const left = this.#keepers.get(chatId)?.filter((other) => other !== keeper) ?? []
      if (left.length > 0) this.#keepers.set(chatId, left)
      else this.#keepers.delete(chatId)
    }
  }
}
