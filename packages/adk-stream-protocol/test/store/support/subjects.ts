import { type BaseSessionService, InMemorySessionService } from '@google/adk'
import { expect } from 'vitest'
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts'
import type { StoreErrorCode } from '../../../src/store/store-error.ts'

/** Matches a StoreError by its code. */
export function refusal(code: StoreErrorCode): unknown {
  return expect.objectContaining({ name: 'StoreError', code })
}

export interface Subject extends AsyncDisposable {
  readonly service: BaseSessionService
}

/** ADK's own service and ours, which must behave alike. */
export const sessionServices: Record<string, () => Promise<Subject>> = {
  'in memory': async () => ({
    service: new InMemorySessionService(),
    [Symbol.asyncDispose]: async () => {},
  }),
  'sqlite without cache': async () => {
    const store = await openSqliteStore({ path: ':memory:', cache: { sessions: 0 } })
    return { service: store.sessions, [Symbol.asyncDispose]: () => store.close() }
  },
}
