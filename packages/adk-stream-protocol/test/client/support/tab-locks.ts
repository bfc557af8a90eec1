import { AsyncLocalStorage } from 'node:async_hooks'

import type { PageLocks } from './fake-locks.ts'

/** The tabs are in one process. Each has its own view of the locks. */
const locksOfTab = new AsyncLocalStorage<PageLocks>()
Object.defineProperty(globalThis, 'navigator', {
  value: {
    get locks() {
      return locksOfTab.getStore()
    },
  },
  configurable: true,
})

/** Runs work of a tab: `navigator.locks` are its locks, also in everything that the work starts. */
export function runInTab<Result>(locks: PageLocks, work: () => Result): Result {
  return locksOfTab.run(locks, work)
}
