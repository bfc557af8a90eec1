import { existsSync } from 'node:fs'
import { mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { countApplied, versionAfter } from '../schema-version.ts'
import { StoreError } from '../store-error.ts'
import { Connection, readCode, readOnlyError } from './connection.ts'
import { restartLeaseClock } from './leases.ts'
import { migrations } from './migrations.ts'

/** Opens a database file or `:memory:`, and migrates it to the newest schema. */
export async function openDatabase(path: string, busyTimeoutMs = 5_000): Promise<Connection> {
  // libsql 0.5.29 aborts the whole process if a path contains NUL.
  if (path === '' || path.includes('\0')) {
    throw new StoreError('invalid', 'openSqliteStore needs `path`: a database file, or `:memory:`.')
  }
  if (path !== ':memory:') await createFile(path)
  const connection = new Connection(path, OPEN_TIMEOUT_MS)
  try {
    // Checked before any setting, so that a file of another program stays unchanged.
    await connection.retry(() => readApplied(connection, path))
    // Two processes may switch a new file to WAL at the same time.
    await connection.retry(() => connection.exec('PRAGMA journal_mode = WAL'))
    // `secure_delete` overwrites deleted data with zeros.
    connection.exec(
      'PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON;',
    )
    await migrate(connection, path)
    await restartLeaseClock(connection)
    if (path !== ':memory:') connection.checkpointInBackground(path)
    connection.busyTimeoutMs = busyTimeoutMs
    return connection
  } catch (error) {
    connection.close()
    // The database file could be opened, so SQLite may not create the files beside it.
    const isFolder = error instanceof StoreError && readCode(error.cause) === 'SQLITE_CANTOPEN'
    throw isFolder ? readOnlyError(error.cause) : error
  }
}

/** Opens an existing database file for reading. Creates nothing and does not migrate. */
export async function openExisting(path: string): Promise<Connection> {
  if (!existsSync(path)) throw new StoreError('unavailable', `The file ${path} does not exist.`)
  const connection = new Connection(path, OPEN_TIMEOUT_MS)
  try {
    const applied = await connection.retry(() => readApplied(connection, path))
    if (applied === migrations.length) return connection
    throw new StoreError(
      'older-schema',
      `The database ${path} is empty, or has the schema of an older version of this library. Start the server once to migrate it.`,
    )
  } catch (error) {
    connection.close()
    throw error
  }
}

/** How long to wait for a database that another process has locked, for example to migrate it, in ms. */
const OPEN_TIMEOUT_MS = 60_000

async function createFile(path: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true })
    // The file contains secrets and conversations. SQLite gives its log files the same mode.
    const file = await open(path, 'a', 0o600)
    await file.close()
  } catch (cause) {
    const sentence = `The database file ${path} cannot be created or written. Check the path and its permissions.`
    throw new StoreError(readFileError(cause), sentence, { cause })
  }
}

/** Only an operator can change rights. Other errors may pass. */
function readFileError(cause: unknown): 'read-only' | 'full' | 'unavailable' {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  if (code === 'ENOSPC') return 'full'
  return code === 'EACCES' || code === 'EPERM' || code === 'EROFS' ? 'read-only' : 'unavailable'
}

async function migrate(connection: Connection, path: string): Promise<void> {
  const applied = await connection.retry(() => readApplied(connection, path))
  if (applied < migrations.length) await connection.write(() => applyMigrations(connection, path))
}

/** One transaction for all migrations: a new database is created in half of the time. */
function applyMigrations(connection: Connection, path: string): void {
  // Read again under the write lock, because another process may have migrated meanwhile.
  const applied = readApplied(connection, path)
  if (applied === 0) connection.exec(CREATE_VERSION)
  for (const step of migrations.slice(applied)) connection.exec(step)
  connection.exec(`UPDATE schema_version SET version = ${versionAfter(migrations.length)}`)
}

const CREATE_VERSION = `
  CREATE TABLE schema_version (version INTEGER NOT NULL) STRICT;
  INSERT INTO schema_version VALUES (0);
`

/** Returns how many migrations a database has had: none if it is empty. Throws if it cannot be used. */
function readApplied(connection: Connection, path: string): number {
  const tables = connection
    .prepare<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table'")
    .rows()
  if (tables.length === 0) return 0
  if (!tables.some((table) => table.name === 'schema_version')) {
    throw new StoreError(
      'corrupt',
      `The database ${path} belongs to another program. Choose another path for the store.`,
    )
  }
  const [row] = connection.prepare<{ version: number }>('SELECT version FROM schema_version').rows()
  const version = row?.version ?? 0
  if (version > versionAfter(migrations.length)) {
    throw new StoreError(
      'newer-schema',
      `The database ${path} has the schema of a newer version of this library (${version}). Upgrade the library.`,
    )
  }
  return countApplied(version, { name: `The database ${path}`, remove: 'Delete the file' })
}
