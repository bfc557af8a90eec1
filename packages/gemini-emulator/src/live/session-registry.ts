import { defer, type Deferred } from '../deferred.ts'
import { EmulatorError } from '../emulator-error.ts'
import type { LiveSession } from './live-session.ts'

/** The sessions of an emulator, and the pending calls of `nextSession`. */
export interface SessionRegistry {
  readonly sessions: readonly LiveSession[]
  add(session: LiveSession): void
  /** Makes a session available to `next`. */
  markReady(this: void, session: LiveSession): void
  /** Returns each ready session once. Waits for one if there is none. */
  next(signal?: AbortSignal): Promise<LiveSession>
  /** Removes ended sessions. */
  reset(): void
  /** Rejects pending calls of `next`. */
  close(): void
}

// Beyond this number, the oldest ended session is removed.
const MAX_SESSIONS = 1000

export function createSessionRegistry(): SessionRegistry {
  const sessions: LiveSession[] = []
  const ready: LiveSession[] = []
  const waiters = new Set<Deferred<LiveSession>>()

  return {
    sessions,
    add(session) {
      sessions.push(session)
      if (sessions.length <= MAX_SESSIONS) return
      const oldest = sessions.find((candidate) => candidate.closed)
      remove(sessions, (candidate) => candidate === oldest)
      remove(ready, (candidate) => candidate === oldest)
    },
    markReady(session) {
      const [waiter] = waiters
      if (!waiter) {
        ready.push(session)
        return
      }
      waiters.delete(waiter)
      waiter.resolve(session)
    },
    async next(signal) {
      signal?.throwIfAborted()
      const session = ready.shift()
      if (session) return session
      const waiter = defer<LiveSession>()
      const abort = () => waiter.reject(signal?.reason)
      waiters.add(waiter)
      signal?.addEventListener('abort', abort, { once: true })
      try {
        return await waiter.promise
      } finally {
        waiters.delete(waiter)
        signal?.removeEventListener('abort', abort)
      }
    },
    reset() {
      remove(sessions, (session) => session.closed !== undefined)
      remove(ready, (session) => session.closed !== undefined)
    },
    close() {
      const error = new EmulatorError('closed', 'The emulator closed before a session was ready.')
      for (const waiter of waiters) waiter.reject(error)
      waiters.clear()
    },
  }
}

function remove(list: LiveSession[], isRemoved: (session: LiveSession) => boolean): void {
  list.splice(0, list.length, ...list.filter((session) => !isRemoved(session)))
}
