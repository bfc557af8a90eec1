import { loadPostgres } from '../../store/commands.ts'
import { openSqliteStore } from '../../store/sqlite/sqlite-store.ts'
import { StoreError } from '../../store/store-error.ts'
import type { Store } from '../../store/store.ts'
import { LoadError } from '../load/load-error.ts'

/** Opens a URL of PostgreSQL or a SQLite file, which is created if it does not exist. Throws a `LoadError`. */
export async function openDatabase(database: string): Promise<Store> {
  try {
    if (!/^postgres(?:ql)?:\/\//.test(database)) return await openSqliteStore({ path: database })
    const { openPostgresStore } = await loadPostgres(() => import('../../store/postgres/index.ts'))
    return await openPostgresStore({ connectionString: database })
  } catch (cause) {
    if (!(cause instanceof StoreError)) throw cause
    throw new LoadError('store', cause.message, { cause })
  }
}
