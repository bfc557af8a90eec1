import { existsSync } from 'node:fs'

import { openSqliteStore } from './sqlite/sqlite-store.ts'
import type { Store } from './store.ts'
import { StoreError } from './store-error.ts'

/** Opens the database of a command: an existing SQLite file, or a URL of PostgreSQL. */
export async function openStore(database: string, schema: string | undefined): Promise<Store> {
  if (/^postgres(?:ql)?:\/\//.test(database)) {
    // The package `pg` is optional.
    const { openPostgresStore } = await import('./postgres/index.ts')
    return openPostgresStore({
      connectionString: database,
      migrate: false,
      maxConnections: 2,
      ...(schema !== undefined && { schema }),
    })
  }
  if (!existsSync(database))
    throw new StoreError('unavailable', `The file ${database} does not exist.`)
  return openSqliteStore({ path: database })
}

/** Reads the option `--lease-ms`. */
export function readLease(text = '15000'): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new Error('--lease-ms must be a number of milliseconds.')
}
