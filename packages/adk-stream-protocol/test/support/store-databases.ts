import { openSqliteStore, type Store } from '../../src/store/index.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { type LeaseTimes, sqliteLeaseTimes } from './lease-times.ts'
import { openStoreDatabase } from './postgres-stores.ts'

/** A database on which several servers open their stores. */
export interface StoreDatabase extends AsyncDisposable {
  readonly openStore: () => Promise<Store>
  readonly leases: LeaseTimes
}

async function openSqlite(): Promise<StoreDatabase> {
  const folder = await temporaryDirectory()
  const path = folder.file('store.db')
  return {
    openStore: () => openSqliteStore({ path }),
    leases: sqliteLeaseTimes(path),
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
