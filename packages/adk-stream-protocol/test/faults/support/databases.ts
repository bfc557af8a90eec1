import { type LeaseTimes, postgresLeaseTimes, sqliteLeaseTimes } from '../../support/lease-times.ts'
import { createDatabase } from '../../support/postgres.ts'
import type { Folder } from './folder.ts'

/** A database that several server processes share. */
export interface SharedDatabase extends AsyncDisposable {
  /** The environment of a server process on it. */
  readonly env: Readonly<Record<string, string>>
  readonly leases: (folder: Folder) => LeaseTimes
}

/** The kinds of databases that several server processes can share. */
export const databases: readonly {
  readonly name: string
  readonly open: () => Promise<SharedDatabase>
}[] = [
  // The file in the folder of the test.
  {
    name: 'SQLite',
    open: async () => ({
      env: {},
      leases: (folder) => sqliteLeaseTimes(folder.database),
      [Symbol.asyncDispose]: async () => undefined,
    }),
  },
  {
    name: 'PostgreSQL',
    open: async () => {
      const database = await createDatabase()
      return {
        env: { DATABASE_URL: database.url },
        leases: () => postgresLeaseTimes(database),
        [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
      }
    },
  },
]
