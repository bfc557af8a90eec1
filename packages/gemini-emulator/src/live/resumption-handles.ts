import type { Connection } from './connection.ts'
import type { ResumableState } from './live-state.ts'

/** A session and all sessions that were resumed from it. At most one connection uses them at a time. */
export interface Lineage {
  connection: Pick<Connection, 'isOpen'> | undefined
}

/** A session state, and the lineage that the handle belongs to. */
interface Resumable {
  readonly state: ResumableState
  readonly lineage: Lineage
}

/** The session states that clients can resume. */
export interface ResumptionHandles {
  create(resumable: Resumable): string
  /** Returns `undefined` if the handle is unknown or expired. */
  find(handle: string): Resumable | undefined
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
  const entries = new Map<string, Resumable & { readonly expiresAt: number }>()
  return {
    create(resumable) {
      const handle = newId()
      entries.set(handle, { ...resumable, expiresAt: now() + lifetimeMs })
      if (entries.size > MAX_HANDLES) {
        const [oldest] = entries.keys()
        if (oldest !== undefined) entries.delete(oldest)
      }
      return handle
    },
    find(handle) {
      const entry = entries.get(handle)
      if (!entry) return undefined
      if (now() < entry.expiresAt) return entry
      entries.delete(handle)
      return undefined
    },
  }
}
