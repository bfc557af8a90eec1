import { openSqliteStore, type Store } from '../../src/store/index.ts'
import { temporaryFolder } from '../store/support/fixture.ts'
import { openStoreDatabase } from './postgres-stores.ts'

/** A database on which several servers open their stores. */
export interface StoreDatabase extends AsyncDisposable {
  readonly openStore: () => Promise<Store>
}

async function openSqlite(): Promise<StoreDatabase> {
  const folder = await temporaryFolder()
  return {
    openStore: () => openSqliteStore({ path: folder.path('store.db') }),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  }
}

export const DATABASES: readonly {
  readonly name: string
  readonly open: () => Promise<StoreDatabase>
}[] = [
  { name: 'PostgreSQL', open: openStoreDatabase },
  { name: 'SQLite', open: openSqlite },
]
