import type { ChatEvent } from '../protocol/server-views.ts'
import type { ChatKey } from './turns.ts'
import { keyOf } from './turns.ts'

type Listener = (event: ChatEvent) => void

/** Who watches which chat. */
export class ChatEvents {
  readonly #listeners = new Map<string, Set<Listener>>()

  tell(chat: ChatKey, event: ChatEvent): void {
    for (const listener of this.#listeners.get(keyOf(chat)) ?? []) listener(event)
  }

  isWatched(chat: ChatKey): boolean {
    return this.#listeners.has(keyOf(chat))
  }

  /** Watches a chat; gives the way to stop. */
  watch(chat: ChatKey, listener: Listener): () => void {
    const key = keyOf(chat)
    const listeners = this.#listeners.get(key) ?? new Set()
    this.#listeners.set(key, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      // The chat may have got watchers of its own again.
      if (listeners.size === 0 && this.#listeners.get(key) === listeners)
        this.#listeners.delete(key)
    }
  }
}
