import { Listeners } from '../../shared/collections.ts'

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
