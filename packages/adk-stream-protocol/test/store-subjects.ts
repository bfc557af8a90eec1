import { type BaseSessionService, InMemorySessionService } from '@google/adk'
import { expect } from 'vitest'
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts'
import type { StoreErrorCode } from '../src/store/store-error.ts'
import { temporaryFolder } from './store-fixture.ts'
import { openTestStores } from './support/postgres-stores.ts'

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
  sqlite: async () => {
    const folder = await temporaryFolder()
    const store = await openSqliteStore({ path: folder.path('sessions.db') })
    return {
      service: store.sessions,
      [Symbol.asyncDispose]: async () => {
        await store.close()
        await folder[Symbol.asyncDispose]()
      },
    }
  },
  postgres: async () => {
    const database = await openTestStores()
    const store = await database.open()
    return { service: store.sessions, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
  },
  'sqlite without cache': async () => {
    const store = await openSqliteStore({ path: ':memory:', cache: { sessions: 0 } })
    return { service: store.sessions, [Symbol.asyncDispose]: () => store.close() }
  },
}
