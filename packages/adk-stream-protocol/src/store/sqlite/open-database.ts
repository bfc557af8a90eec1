import { existsSync } from 'node:fs'
import { mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { StoreError } from '../store-error.ts'
import { Connection } from './connection.ts'
import { migrations } from './migrations.ts'

/** Opens a database file, or `:memory:`, with our settings and the newest schema. */
export async function openDatabase(path: string, busyTimeoutMs = 5_000): Promise<Connection> {
  // libsql 0.5.29 aborts the whole process when a path holds NUL.
  if (path === '' || path.includes('\0')) {
    throw new StoreError('invalid', 'A store needs the `path` of a database file, or `:memory:`.')
  }
  if (path !== ':memory:') await createFile(path)
  const connection = new Connection(path, OPEN_TIMEOUT_MS)
  try {
    // Before any setting: a file of another program stays as it is.
    await connection.retry(() => readVersion(connection, path))
    // Two processes may change a new file to WAL at once.
    await connection.retry(() => connection.exec('PRAGMA journal_mode = WAL'))
    // What is deleted is overwritten with zeros.
    connection.exec(
      'PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON;',
    )
    await migrate(connection, path)
    connection.busyTimeoutMs = busyTimeoutMs
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Opens a database file to look into it: nothing is created, and no schema is changed. */
export async function openExisting(path: string): Promise<Connection> {
  if (!existsSync(path)) throw new StoreError('unavailable', `There is no file ${path}.`)
  const connection = new Connection(path, OPEN_TIMEOUT_MS)
  try {
    const version = await connection.retry(() => readVersion(connection, path))
    if (version === migrations.length) return connection
    throw new StoreError(
      'invalid',
      `The database ${path} was written by an older version of this library; open it with the server first.`,
    )
  } catch (error) {
    connection.close()
    throw error
  }
}

/** How long to wait for a database that another process is working on, such as one that changes its schema, in ms. */
const OPEN_TIMEOUT_MS = 60_000

async function createFile(path: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true })
    // The file holds secrets and what people said. SQLite gives its log files the same mode.
    const file = await open(path, 'a', 0o600)
    await file.close()
  } catch (cause) {
    throw new StoreError(
      'unavailable',
      `The database file ${path} cannot be created or written; check the path.`,
      { cause },
    )
  }
}

async function migrate(connection: Connection, path: string): Promise<void> {
  let version = await connection.retry(() => readVersion(connection, path))
  while (version < migrations.length)
    version = await connection.write(() => takeStep(connection, path))
}

function takeStep(connection: Connection, path: string): number {
  // Read again under the write lock: another process may have taken the step meanwhile.
  const version = readVersion(connection, path)
  const step = migrations[version]
  if (step === undefined) return version
  if (version === 0) connection.exec(CREATE_VERSION)
  if (typeof step === 'string') connection.exec(step)
  else step(connection)
  connection.exec('UPDATE schema_version SET version = version + 1')
  return version + 1
}

const CREATE_VERSION = `
  CREATE TABLE schema_version (version INTEGER NOT NULL) STRICT;
  INSERT INTO schema_version VALUES (0);
`

function readVersion(connection: Connection, path: string): number {
  const tables = connection
    .prepare<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table'")
    .rows()
  if (tables.length === 0) return 0
  if (!tables.some((table) => table.name === 'schema_version')) {
    throw new StoreError(
      'corrupt',
      `The database ${path} belongs to another program; give the store a file of its own.`,
    )
  }
  const [row] = connection.prepare<{ version: number }>('SELECT version FROM schema_version').rows()
  const version = row?.version ?? 0
  if (version > migrations.length) {
    throw new StoreError(
      'newer-schema',
      `The database ${path} was written by a newer version of this library (schema ${version}); upgrade the library.`,
    )
  }
  return version
}
