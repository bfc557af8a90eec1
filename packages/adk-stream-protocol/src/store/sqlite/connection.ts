import Database from 'libsql'
import { StoreError } from '../store-error.ts'

/** What may be bound. libsql 0.5.29 aborts the whole process when it is given a boolean, so nothing wider goes in. */
export type SqlValue = string | number | Buffer | null

/**
 * What a commit outlives once it is acknowledged. `process-death` waits for no disk: a killed process loses nothing, a machine that
 * loses its power may lose the last moments. A later commit that outlives power loss takes all before it along.
 */
type Outlives = 'process-death' | 'power-loss'

const SYNCHRONOUS: Record<Outlives, string> = { 'process-death': 'NORMAL', 'power-loss': 'FULL' }

export interface Statement<Row> {
  /** Runs a statement that returns no rows, and tells how many rows it changed. */
  run(...values: SqlValue[]): number
  /** All rows of the result. */
  rows(...values: SqlValue[]): Row[]
}

/** One libsql connection: statements prepared once, transactions, and errors in our own words. */
export class Connection {
  #database: Database.Database | undefined
  #outlives: Outlives | undefined
  readonly #release: (() => void)[] = []

  constructor(path: string, busyTimeoutMs: number) {
    this.#database = translateErrors(() => new Database(path, { timeout: busyTimeoutMs }))
  }

  exec(sql: string): void {
    translateErrors(() => this.#open().exec(sql))
  }

  /** Prepares a statement; `Row` is the shape of the columns it selects, which only the author of the SQL can know. */
  prepare<Row = never>(sql: string): Statement<Row> {
    let prepared: Database.Statement<SqlValue[]> | undefined = translateErrors(() =>
      this.#open().prepare<SqlValue[]>(sql),
    )
    this.#release.push(() => {
      prepared = undefined
    })
    const use = <Result>(work: (statement: Database.Statement<SqlValue[]>) => Result): Result =>
      translateErrors(() => work(prepared ?? refuseClosed()))
    return {
      run: (...values) => use((statement) => statement.run(...values).changes),
      // Never `get`: libsql leaves the statement open when more rows could follow, and its lock blocks the next commit.
      rows: (...values) => use((statement) => statement.all(...values)) as Row[],
    }
  }

  /** Runs reads that must see one moment of the database. */
  read<Result>(work: () => Result): Result {
    return this.#transaction('BEGIN', work)
  }

  /** Runs writes that happen together or not at all; no other process writes meanwhile. */
  write<Result>(work: () => Result, outlives: Outlives = 'power-loss'): Result {
    if (outlives !== this.#outlives) {
      this.exec(`PRAGMA synchronous = ${SYNCHRONOUS[outlives]}`)
      this.#outlives = outlives
    }
    return this.#transaction('BEGIN IMMEDIATE', work)
  }

  close(): void {
    const database = this.#database
    if (database === undefined) return
    this.#database = undefined
    try {
      database.pragma('wal_checkpoint(TRUNCATE)')
    } catch {
      // Only tidiness is lost: what was committed is safe in the write-ahead log.
    }
    // libsql keeps the file open while a statement of it is reachable.
    for (const release of this.#release) release()
    database.close()
  }

  #transaction<Result>(begin: string, work: () => Result): Result {
    const database = this.#open()
    return translateErrors(() => {
      database.exec(begin)
      try {
        const result = work()
        database.exec('COMMIT')
        return result
      } catch (error) {
        // A full disk or an I/O error has already rolled back.
        if (database.inTransaction) database.exec('ROLLBACK')
        throw error
      }
    })
  }

  #open(): Database.Database {
    return this.#database ?? refuseClosed()
  }
}

/** Tells whether an operation failed only because another connection was in its way. */
export function isBusy(error: unknown): boolean {
  const cause = error instanceof StoreError ? error.cause : undefined
  return cause instanceof Database.SqliteError && cause.code.startsWith('SQLITE_BUSY')
}

function refuseClosed(): never {
  throw new StoreError('closed', 'The store is closed; open a new one.')
}

function translateErrors<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    throw error instanceof StoreError ? error : toStoreError(error)
  }
}

function toStoreError(cause: unknown): StoreError {
  const code = cause instanceof Database.SqliteError ? cause.code : ''
  if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')) {
    return new StoreError(
      'corrupt',
      'The database file is damaged or not a database; restore it or choose another path.',
      {
        cause,
      },
    )
  }
  return new StoreError(
    'unavailable',
    'The database cannot be used now; see `cause` for what it said.',
    { cause },
  )
}
