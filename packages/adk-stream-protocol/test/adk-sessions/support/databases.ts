import { DatabaseSessionService } from '@google/adk/sessions/database'
import { LibSqlDriver } from '@mikro-orm/libsql'
import { PostgreSqlDriver } from '@mikro-orm/postgresql'

import { createDatabase, type TestDatabase } from '../../support/postgres.ts'

/** Sessions in a database, and a function that closes it. */
interface OpenSessions {
  readonly service: DatabaseSessionService
  readonly close: () => Promise<void>
}

/** A database server. */
export interface Databases {
  /** Opens an empty database. */
  readonly open: () => Promise<OpenSessions>
  readonly stop: () => Promise<void>
}

/** SQLite in memory, with the driver that needs no compiler. */
export async function startLibSql(): Promise<Databases> {
  return {
    open: () =>
      openSessions(new DatabaseSessionService({ driver: LibSqlDriver, dbName: ':memory:' })),
    stop: async () => undefined,
  }
}

/** Databases of the PostgreSQL server of the test run. */
export async function startPostgres(): Promise<Databases> {
  const databases: TestDatabase[] = []
  return {
    open: async () => {
      const database = await createDatabase()
      databases.push(database)
      const { hostname: host, port, username: user, password, pathname } = new URL(database.url)
      const place = { host, port: Number(port), user, password, dbName: pathname.slice(1) }
      return openSessions(new DatabaseSessionService({ driver: PostgreSqlDriver, ...place }))
    },
    stop: async () => {
      for (const database of databases) await database[Symbol.asyncDispose]()
    },
  }
}

async function openSessions(service: DatabaseSessionService): Promise<OpenSessions> {
  // ADK 2.0.0 does not guard its initialisation against concurrent first calls.
  await service.init()
  return {
    service,
    close: async () => {
      // ADK has no way to close it.
      const orm: unknown = Reflect.get(service, 'orm')
      if (typeof orm === 'object' && orm !== null && 'close' in orm) {
        const { close } = orm
        if (typeof close === 'function') await close.call(orm)
      }
    },
  }
}
