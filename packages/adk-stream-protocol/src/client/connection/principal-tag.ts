import { Listeners, keepNewest } from '../../shared/collections.ts'
import type { MessageView } from './chat-messages.ts'

/** An API or a transport that knows the tag of the principal that the server sees (SE1120). */
export interface Identified {
  /** Undefined before the first response. */
  readonly principal: string | undefined
  onPrincipal(listener: () => void): () => void
}

/** The tag of the principal that the server sees, with its listeners. */
export interface PrincipalTag {
  readonly current: string | undefined
  set(next: string | undefined): void
  /** Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void
}

/** The principals of the page when it first sent each message and each output. When one is sent again, another person may be signed in. */
export class FirstSenders {
  readonly #tags = new Map<string, string>()

  /** Records who sends a message, if it is sent for the first time. Otherwise returns who sent it first. */
  ofMessage(message: MessageView | undefined, current: string | undefined): string | undefined {
    if (message?.role !== 'user') return undefined
    const known = this.#tags.get(message.id)
    this.#record(message.id, current)
    return known
  }

  /** Returns who sent the outputs of these calls first: only this person has the chat. Undefined if nobody is known to be signed in. */
  ofOutputs(toolCallIds: readonly string[], current: string | undefined): string | undefined {
    const [first = current] = toolCallIds.flatMap((id) => this.#record(id, current) ?? [])
    return first
  }

  #record(id: string, current: string | undefined): string | undefined {
    const first = this.#tags.get(id) ?? current
    if (first !== undefined) this.#tags.set(id, first)
    keepNewest(this.#tags, MAX_SENDERS)
    return first
  }
}

const MAX_SENDERS = 100

export function createPrincipalTag(): PrincipalTag {
  const listeners = new Listeners()
  let current: string | undefined
  return {
    get current() {
      return current
    },
    set: (next) => {
      if (next === current) return
      current = next
      listeners.call()
    },
    subscribe: (listener) => listeners.add(listener),
  }
}
