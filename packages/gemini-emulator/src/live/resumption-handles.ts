import type { ResumableState } from './live-state.ts'

/** The session states that clients can resume. */
export interface ResumptionHandles {
  create(state: ResumableState): string
  /** Returns `undefined` if the handle is unknown or expired. */
  find(handle: string): ResumableState | undefined
}

export interface HandleOptions {
  readonly lifetimeMs: number
  readonly newId: () => string
  readonly now: () => number
}

// States share their history, so an old one needs little memory. The limit is for emulators that run for weeks.
const MAX_HANDLES = 10_000

export function createResumptionHandles(options: HandleOptions): ResumptionHandles {
  const { lifetimeMs, newId, now } = options
  const entries = new Map<string, { readonly state: ResumableState; readonly expiresAt: number }>()
  return {
    create(state) {
      const handle = newId()
      entries.set(handle, { state, expiresAt: now() + lifetimeMs })
      if (entries.size > MAX_HANDLES) {
        const [oldest] = entries.keys()
        if (oldest !== undefined) entries.delete(oldest)
      }
      return handle
    },
    find(handle) {
      const entry = entries.get(handle)
      if (!entry) return undefined
      if (now() < entry.expiresAt) return entry.state
      entries.delete(handle)
      return undefined
    },
  }
}
