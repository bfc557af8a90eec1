import { createDatabase } from '../../support/postgres.ts'

/** A database that several server processes share. */
export interface SharedDatabase extends AsyncDisposable {
  /** The environment of a server process on it. */
  readonly env: Readonly<Record<string, string>>
}

/** The kinds of databases that several server processes can share. */
export const databases: readonly {
  readonly name: string
  readonly open: () => Promise<SharedDatabase>
}[] = [
  // The file in the folder of the test.
  { name: 'SQLite', open: async () => ({ env: {}, [Symbol.asyncDispose]: async () => undefined }) },
  {
    name: 'PostgreSQL',
    open: async () => {
      const database = await createDatabase()
      // The machine may be busy, and no thread renews the lease of a process on PostgreSQL that does not get to run.
      const env = { DATABASE_URL: database.url, LEASE_MS: '4000' }
      return { env, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
    },
  },
]
