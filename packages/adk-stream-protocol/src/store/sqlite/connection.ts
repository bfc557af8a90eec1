import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'

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
  /** Runs a statement that returns no rows, and tells how many rows it changed. For use within `read` and `write`. */
  run(...values: SqlValue[]): number
  /** All rows of the result. For use within `read` and `write`. */
  rows(...values: SqlValue[]): Row[]
  /** All rows of a SELECT on its own. Waits while the database is locked. */
  select(...values: SqlValue[]): Promise<Row[]>
}

/** A write that waits until the database is free. */
interface QueuedWrite {
  /** Runs the transaction. Returns false, having changed nothing, if another connection holds the write lock. */
  readonly attempt: () => boolean
  readonly reject: (error: StoreError) => void
  readonly deadline: number
}

/**
 * One libsql connection: statements prepared once, transactions, and errors in our own words.
 *
 * libsql is synchronous, so SQLite must never wait for a lock by itself: that would stop the whole process. Its busy timeout is 0,
 * and a transaction that finds the database locked is tried again from a timer, until `busyTimeoutMs` have passed.
 */
export class Connection {
  #database: Database.Database | undefined
  #outlives: Outlives | undefined
  /** How long a read or write waits for a locked database, in ms. */
  busyTimeoutMs: number
  readonly #release: (() => void)[] = []
  /** In the order they were asked for: no write overtakes an earlier one. */
  readonly #queue: QueuedWrite[] = []
  #isQueueRunning = false

  constructor(path: string, busyTimeoutMs: number) {
    this.busyTimeoutMs = busyTimeoutMs
    this.#database = translateErrors(() => new Database(path, { timeout: 0 }))
  }

  /** Executes SQL at once. Throws `busy` if the database is locked. */
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
    // Never `get`: libsql leaves the statement open when more rows could follow, and its lock blocks the next commit.
    const rows = (...values: SqlValue[]) => use((statement) => statement.all(...values)) as Row[]
    return {
      run: (...values) => use((statement) => statement.run(...values).changes),
      rows,
      select: (...values) => this.retry(() => rows(...values)),
    }
  }

  /** Runs reads that must see one moment of the database. Waits while it is locked; `work` may run several times. */
  async read<Result>(work: () => Result): Promise<Result> {
    return this.retry(() => {
      this.exec('BEGIN')
      return this.#commitAfter(work)
    })
  }

  /**
   * Runs writes that happen together or not at all; no other process writes meanwhile. Waits while another process does, behind the
   * writes that were asked for before; `work` runs once.
   */
  write<Result>(work: () => Result, outlives: Outlives = 'power-loss'): Promise<Result> {
    return new Promise((resolve, reject) => {
      const attempt = (): boolean => {
        try {
          this.#setOutlives(outlives)
          if (!this.#beginWrite()) return false
          resolve(this.#commitAfter(work))
        } catch (error) {
          reject(error)
        }
        return true
      }
      if (this.#queue.length === 0 && attempt()) return
      this.#queue.push({ attempt, reject, deadline: performance.now() + this.busyTimeoutMs })
      if (!this.#isQueueRunning) void this.#runQueue()
    })
  }

  /** Runs something that may be repeated until the database is not locked, at most for the busy timeout. */
  async retry<Result>(work: () => Result): Promise<Result> {
    const deadline = performance.now() + this.busyTimeoutMs
    for (let tries = 0; ; tries += 1) {
      try {
        return work()
      } catch (error) {
        if (!isBusy(error) || performance.now() >= deadline) throw error
      }
      await delay(pauseMs(tries))
    }
  }

  /**
   * Empties the write-ahead log, which holds copies of what was deleted. Gives up after the busy timeout if other processes read or
   * write all the time: then the log is overwritten by and by.
   */
  async emptyLog(): Promise<void> {
    const deadline = performance.now() + this.busyTimeoutMs
    for (let tries = 0; performance.now() < deadline; tries += 1) {
      if (this.#checkpoint()) return
      await delay(pauseMs(tries))
    }
  }

  /** Closes the database. Writes that still wait for it are refused. */
  close(): void {
    const database = this.#database
    if (database === undefined) return
    this.#database = undefined
    for (const { reject } of this.#queue.splice(0)) reject(closedError())
    try {
      database.pragma(CHECKPOINT)
    } catch {
      // Only tidiness is lost: what was committed is safe in the write-ahead log.
    }
    // libsql keeps the file open while a statement of it is reachable.
    for (const release of this.#release) release()
    database.close()
  }

  /** Moves the log into the database file. Returns false if other connections are in the way. */
  #checkpoint(): boolean {
    try {
      const [result] = translateErrors(() => this.#open().pragma(CHECKPOINT)) as { busy: number }[]
      return result?.busy === 0
    } catch (error) {
      if (isBusy(error)) return false
      throw error
    }
  }

  async #runQueue(): Promise<void> {
    this.#isQueueRunning = true
    let tries = 0
    let since = performance.now()
    for (let head = this.#queue[0]; head !== undefined; head = this.#queue[0]) {
      if (head.attempt()) {
        this.#queue.shift()
        tries = 0
        // Many may have gathered; others get their turn between them.
        if (performance.now() - since < MAX_RUN_MS) continue
        await nextTurn()
      } else {
        this.#refuseOverdue()
        await delay(pauseMs(tries))
        tries += 1
      }
      since = performance.now()
    }
    this.#isQueueRunning = false
  }

  #refuseOverdue(): void {
    const now = performance.now()
    while ((this.#queue[0]?.deadline ?? Infinity) <= now) this.#queue.shift()?.reject(busyError())
  }

  #setOutlives(outlives: Outlives): void {
    if (outlives === this.#outlives) return
    this.exec(`PRAGMA synchronous = ${SYNCHRONOUS[outlives]}`)
    this.#outlives = outlives
  }

  /** Takes the write lock. Returns false if another connection has it. */
  #beginWrite(): boolean {
    try {
      this.exec('BEGIN IMMEDIATE')
      return true
    } catch (error) {
      if (isBusy(error)) return false
      throw error
    }
  }

  #commitAfter<Result>(work: () => Result): Result {
    const database = this.#open()
    return translateErrors(() => {
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

const CHECKPOINT = 'wal_checkpoint(TRUNCATE)'

/** How long writes that gathered run in one go, in ms. */
const MAX_RUN_MS = 5

const MAX_PAUSE_MS = 25

/** How long to wait before the next try: longer each time, and never the same in two processes. */
function pauseMs(tries: number): number {
  return Math.min(MAX_PAUSE_MS, 2 ** tries) * (0.5 + Math.random())
}

/** Tells whether an operation failed only because another connection was in its way. */
function isBusy(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'busy'
}

function refuseClosed(): never {
  throw closedError()
}

function closedError(): StoreError {
  return new StoreError('closed', 'The store is closed; open a new one.')
}

function busyError(cause?: unknown): StoreError {
  return new StoreError(
    'busy',
    'The database is locked by another process; try again in a moment.',
    { cause },
  )
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
  if (code.startsWith('SQLITE_BUSY')) return busyError(cause)
  return new StoreError(
    'unavailable',
    'The database cannot be used now; see `cause` for what it said.',
    { cause },
  )
}
