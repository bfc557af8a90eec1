import { ProtocolError } from '../protocol/errors.ts'
import type { ChatKey } from './turns.ts'
import { keyOf } from './turns.ts'

/** What a page that watches a chat is told of; what it then reads, it reads where it always does. */
export type ChatEvent =
  /** A turn begins or goes on: resume to read it. */
  | { readonly type: 'turn'; readonly messageId: string }
  | { readonly type: 'approval'; readonly approvalId: string; readonly state: string }

type Listener = (event: ChatEvent) => void

/** Who watches which chat. */
export class ChatEvents {
  readonly #maxPerPrincipal: number
  readonly #listeners = new Map<string, Set<Listener>>()
  readonly #perPrincipal = new Map<string, number>()

  constructor(maxPerPrincipal: number) {
    this.#maxPerPrincipal = maxPerPrincipal
  }

  tell(chat: ChatKey, event: ChatEvent): void {
    for (const listener of this.#listeners.get(keyOf(chat)) ?? []) listener(event)
  }

  /** Watches a chat; gives the way to stop. */
  watch(chat: ChatKey, listener: Listener): () => void {
    const { principalId } = chat
    const count = this.#perPrincipal.get(principalId) ?? 0
    if (count >= this.#maxPerPrincipal) throw new ProtocolError('too-many-watchers')
    const key = keyOf(chat)
    const listeners = this.#listeners.get(key) ?? new Set()
    this.#listeners.set(key, listeners.add(listener))
    this.#perPrincipal.set(principalId, count + 1)
    return () => {
      if (!listeners.delete(listener)) return
      if (listeners.size === 0) this.#listeners.delete(key)
      const left = (this.#perPrincipal.get(principalId) ?? 1) - 1
      if (left > 0) this.#perPrincipal.set(principalId, left)
      else this.#perPrincipal.delete(principalId)
    }
  }
}
