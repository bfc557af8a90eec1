import type { ChatEvent } from '../protocol/server-views.ts'
import { keyOf } from './turn-registry.ts'
import type { ChatRef } from '../shared/chat-ref.ts'

type Listener = (event: ChatEvent) => void

/** Delivers the events of chats to their listeners. */
export class ChatEvents {
  readonly #listeners = new Map<string, Set<Listener>>()

  publish(chat: ChatRef, event: ChatEvent): void {
    for (const listener of this.#listeners.get(keyOf(chat)) ?? []) listener(event)
  }

  isWatched(chat: ChatRef): boolean {
    return this.#listeners.has(keyOf(chat))
  }

  /** Adds a listener for a chat. Returns a function that removes it. */
  watch(chat: ChatRef, listener: Listener): () => void {
    const key = keyOf(chat)
    const listeners = this.#listeners.get(key) ?? new Set()
    this.#listeners.set(key, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      // The chat may have a new set of listeners meanwhile.
      if (listeners.size === 0 && this.#listeners.get(key) === listeners)
        this.#listeners.delete(key)
    }
  }
}
