import type { LiveMemory } from './live-state.ts'

/** Session states by resumption handle. */
export interface Handles {
  issue(memory: LiveMemory): string
  /** Nothing for a handle that was never issued or is too old. */
  redeem(handle: string): LiveMemory | undefined
}

export interface HandlesOptions {
  readonly lifetimeMs: number
  readonly newId: () => string
  readonly now: () => number
}

// States share their history, so an old one costs little; the bound is for emulators that run for weeks.
const MAX_HANDLES = 10_000

export function createHandles({ lifetimeMs, newId, now }: HandlesOptions): Handles {
  const issued = new Map<string, { readonly memory: LiveMemory; readonly expiresAt: number }>()
  return {
    issue(memory) {
      const handle = newId()
      issued.set(handle, { memory, expiresAt: now() + lifetimeMs })
      if (issued.size > MAX_HANDLES) {
        const [oldest] = issued.keys()
        if (oldest !== undefined) issued.delete(oldest)
      }
      return handle
    },
    redeem(handle) {
      const entry = issued.get(handle)
      if (!entry) return undefined
      if (now() < entry.expiresAt) return entry.memory
      issued.delete(handle)
      return undefined
    },
  }
}
