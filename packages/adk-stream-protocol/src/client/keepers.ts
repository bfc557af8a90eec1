import type { ChatKeeper } from './chat-keeper.ts'

/** Who looks after which chat: the newest of those who came. */
export class Keepers {
  readonly #keepers = new Map<string, ChatKeeper[]>()

  of(chatId: string): ChatKeeper | undefined {
    return this.#keepers.get(chatId)?.at(-1)
  }

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
