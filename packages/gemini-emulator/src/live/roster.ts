import { defer, type Deferred } from '../deferred.ts'
import { EmulatorError } from '../emulator-error.ts'
import type { LiveSession } from './live-session.ts'

/** The sessions of an emulator, and those who wait for the next one. */
export interface Roster {
  readonly sessions: readonly LiveSession[]
  add(session: LiveSession): void
  /** The session is ready to be handed out. */
  announce(this: void, session: LiveSession): void
  next(signal?: AbortSignal): Promise<LiveSession>
  reset(): void
  close(): void
}

// Ended sessions beyond this many are forgotten, oldest first.
const MAX_SESSIONS = 1000

export function createRoster(): Roster {
  const sessions: LiveSession[] = []
  const ready: LiveSession[] = []
  const waiters = new Set<Deferred<LiveSession>>()

  return {
    sessions,
    add(session) {
      sessions.push(session)
      if (sessions.length <= MAX_SESSIONS) return
      const oldest = sessions.find((candidate) => candidate.closed)
      forget(sessions, (candidate) => candidate === oldest)
      forget(ready, (candidate) => candidate === oldest)
    },
    announce(session) {
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
      const abandon = () => waiter.reject(signal?.reason)
      waiters.add(waiter)
      signal?.addEventListener('abort', abandon, { once: true })
      try {
        return await waiter.promise
      } finally {
        waiters.delete(waiter)
        signal?.removeEventListener('abort', abandon)
      }
    },
    reset() {
      forget(sessions, (session) => session.closed !== undefined)
      forget(ready, (session) => session.closed !== undefined)
    },
    close() {
      const closed = new EmulatorError('closed', 'The emulator was closed before the session came.')
      for (const waiter of waiters) waiter.reject(closed)
      waiters.clear()
    },
  }
}

function forget(list: LiveSession[], isForgotten: (session: LiveSession) => boolean): void {
  list.splice(0, list.length, ...list.filter((session) => !isForgotten(session)))
}
