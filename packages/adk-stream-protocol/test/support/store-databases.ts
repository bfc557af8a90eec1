import { openSqliteStore, type Store } from '../../src/store/index.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { openStoreDatabase } from './postgres-stores.ts'

/** A database on which several servers open their stores. */
export interface StoreDatabase extends AsyncDisposable {
  readonly openStore: () => Promise<Store>
}

async function openSqlite(): Promise<StoreDatabase> {
  const folder = await temporaryDirectory()
  return {
    openStore: () => openSqliteStore({ path: folder.file('store.db') }),
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
