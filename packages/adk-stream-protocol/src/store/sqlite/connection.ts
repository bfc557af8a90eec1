import { setImmediate as yieldToEventLoop, setTimeout as delay } from 'node:timers/promises'

import Database from 'libsql'
import AsyncDatabase from 'libsql/promise'
import { joinKey, type SessionKey } from '../keys.ts'
import { StoreError } from '../store-error.ts'
import { DatabaseFile } from './database-file.ts'

/** A value that can be bound. libsql 0.5.29 aborts the whole process if it is given a boolean. */
export type SqlValue = string | number | Buffer | null

/**
 * What an acknowledged commit survives. `process-death` does not wait for the disk: it survives a killed process, but
 * a power failure may lose the newest commits. A later `power-loss` commit makes all earlier ones durable.
 */
type Durability = 'process-death' | 'power-loss'

const SYNCHRONOUS: Record<Durability, string> = { 'process-death': 'NORMAL', 'power-loss': 'FULL' }

export interface Statement<Row> {
  /** Runs a statement without result rows and returns the number of changed rows. For use within `read` and `write`. */
  run(...values: SqlValue[]): number
  /** Returns all result rows. For use within `read` and `write`. */
  rows(...values: SqlValue[]): Row[]
  /** Runs a single SELECT and returns all rows. Waits while the database is locked. */
  select(...values: SqlValue[]): Promise<Row[]>
}

/** A write that waits for its transaction. */
interface QueuedWrite {
  readonly work: () => unknown
  readonly durability: Durability
  /** Whether it may run in one transaction with the writes before and after it that may, too. */
  readonly isShared: boolean
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
  readonly deadline: number
}

/**
 * A libsql connection with prepared statements, transactions and errors as `StoreError`.
 *
 * libsql is synchronous. If SQLite waited for a lock, it would block the whole process. Its busy timeout is therefore
 * 0, and a timer retries a transaction that finds the database locked, for up to `busyTimeoutMs`.
 */
export class Connection {
  #database: Database.Database | undefined
  #durability: Durability | undefined
  /** How long a read or write waits for a locked database, in ms. */
  busyTimeoutMs: number
  readonly #release: (() => void)[] = []
  /** In request order. A write never overtakes an earlier one. */
  readonly #queue: QueuedWrite[] = []
  #isQueueRunning = false
  /** The chat that has written first in this turn of the event loop. */
  #firstChat: string | undefined
  #checkpoints: Checkpoints | undefined
  readonly #file: DatabaseFile

  constructor(path: string, busyTimeoutMs: number) {
    this.busyTimeoutMs = busyTimeoutMs
    this.#file = new DatabaseFile(path)
    this.#database = translateErrors(() => new Database(path, { timeout: 0 }))
  }

  /** Executes SQL immediately. Throws `busy` if the database is locked. */
  exec(sql: string): void {
    translateErrors(() => this.#open().exec(sql))
  }

  /**
   * Prepares a statement when it is used first: a store has dozens, and a server may never use half of them. The caller
   * guarantees that `Row` matches the selected columns.
   */
  prepare<Row = never>(sql: string): Statement<Row> {
    let prepared: PreparedStatement | undefined
    this.#release.push(() => {
      prepared = undefined
    })
    // libsql copies values that are not given as one array.
    const open = () => (prepared ??= prepareStatement(this.#open(), sql))
    // Never use `get`: libsql keeps the statement open if more rows could follow, and its lock blocks the next
    // commit.
    const rows = (...values: SqlValue[]) =>
      translateErrors(() => {
        const { statement, columns } = open()
        return statement.all(values).map((row) => toRow(columns, row))
      }) as Row[]
    return {
      run: (...values) => translateErrors(() => open().statement.run(values).changes),
      rows,
      select: (...values) => this.retry(() => rows(...values)),
    }
  }

  /** Runs reads on one snapshot of the database. Waits while it is locked. `work` may run several times. */
  async read<Result>(work: () => Result): Promise<Result> {
    return this.retry(() => {
      this.exec('BEGIN')
      return this.#commitAfter(work)
    })
  }

  /** Runs writes in one transaction. Waits for the write lock, after all writes that were requested before. `work` runs once. */
  write<Result>(work: () => Result, durability: Durability = 'power-loss'): Promise<Result> {
    const written = this.#enqueue(work, durability, false)
    this.#startQueue()
    return written
  }

  /**
   * ST1860: like `write` with `process-death`, but in one transaction with the writes of other chats in the same turn of the event loop. A
   * write that fails does not affect the others. The first chat of the turn does not wait for others.
   */
  writeTogether<Result>(chat: SessionKey, work: () => Result): Promise<Result> {
    if (this.#firstChat === undefined) {
      setImmediate(() => {
        this.#firstChat = undefined
        this.#startQueue()
      })
    }
    const key = joinKey(chat)
    this.#firstChat ??= key
    const written = this.#enqueue(work, 'process-death', true)
    if (this.#firstChat === key) this.#startQueue()
    return written
  }

  /** Runs work that may be repeated, until the database is not locked or the busy timeout has passed. */
  async retry<Result>(work: () => Result): Promise<Result> {
    this.#file.checkSometimes()
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
   * Empties the write-ahead log, which contains copies of deleted data. Gives up after the busy timeout if other
   * processes use the database all the time. Later writes then overwrite the log.
   */
  async emptyLog(): Promise<void> {
    const deadline = performance.now() + this.busyTimeoutMs
    for (let tries = 0; performance.now() < deadline; tries += 1) {
      if (this.#checkpoint()) return
      await delay(pauseMs(tries))
    }
  }

  /** From now on, the log is moved into the database file outside the event loop. */
  checkpointInBackground(path: string): void {
    // A log that grows faster than it is moved is still moved by a commit.
    this.exec(`PRAGMA wal_autocheckpoint = ${MAX_LOG_PAGES}`)
    this.#checkpoints = startCheckpoints(path)
  }

  /** Ends what runs in the background. To be awaited before `close`. */
  async endBackground(): Promise<void> {
    await this.#checkpoints?.close()
    this.#checkpoints = undefined
  }

  /** Closes the database. Rejects writes that are still waiting. */
  close(): void {
    void this.endBackground()
    this.#startQueue()
    const database = this.#database
    if (database === undefined) return
    this.#database = undefined
    for (const { reject } of this.#queue.splice(0)) reject(closedError())
    try {
      database.pragma(CHECKPOINT)
    } catch {
      // All commits are safe in the write-ahead log. It is just not emptied.
    }
    // libsql keeps the file open while one of its statements is reachable.
    for (const release of this.#release) release()
    database.close()
  }

  /** Moves the log into the database file. Returns false if other connections prevent it. */
  #checkpoint(): boolean {
    try {
      const [result] = translateErrors(() => this.#open().pragma(CHECKPOINT)) as { busy: number }[]
      return result?.busy === 0
    } catch (error) {
      if (isBusy(error)) return false
      throw error
    }
  }

  #enqueue<Result>(work: () => Result, durability: Durability, isShared: boolean): Promise<Result> {
    const deadline = performance.now() + this.busyTimeoutMs
    return new Promise((settle, reject) => {
      // It is called with the result of `work`.
      const resolve = settle as QueuedWrite['resolve']
      this.#queue.push({ work, durability, isShared, resolve, reject, deadline })
    })
  }

  /** Runs the queue, unless it is being run. Without waiting if no other connection has the write lock. */
  #startQueue(): void {
    if (!this.#isQueueRunning) void this.#runQueue()
  }

  async #runQueue(): Promise<void> {
    this.#isQueueRunning = true
    let tries = 0
    let since = performance.now()
    for (let head = this.#queue[0]; head !== undefined; head = this.#queue[0]) {
      if (this.#runFirst(head)) {
        tries = 0
        // The queue may be long. Yield to the event loop from time to time.
        if (this.#queue.length === 0 || performance.now() - since < MAX_RUN_MS) continue
        await yieldToEventLoop()
      } else {
        this.#refuseOverdue()
        await delay(pauseMs(tries))
        tries += 1
      }
      since = performance.now()
    }
    this.#isQueueRunning = false
  }

  /** Runs the first write of the queue, or the first ones that share a transaction. Returns false if another connection has the write lock. */
  #runFirst(first: QueuedWrite): boolean {
    const { durability } = first
    const group = first.isShared ? firstShared(this.#queue) : [first]
    try {
      if (durability === 'power-loss') this.#file.check()
      else this.#file.checkSometimes()
      this.#setDurability(durability)
      if (!this.#beginWrite()) return false
      const finish = this.#commitAfter(() =>
        group.length === 1 ? [runWrite(first)] : group.map((write) => this.#runBeside(write)),
      )
      this.#checkpoints?.countCommit()
      for (const settle of finish) settle()
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
    this.#queue.splice(0, group.length)
    return true
  }

  /** Runs one of several writes in a transaction. If it fails, only its own changes are undone. Returns what to call after the commit. */
  #runBeside(write: QueuedWrite): () => void {
    this.exec('SAVEPOINT shared')
    try {
      const settle = translateErrors(() => runWrite(write))
      this.exec('RELEASE shared')
      return settle
    } catch (error) {
      // SQLite has rolled back the whole transaction after a full disk or an I/O error.
      if (!this.#open().inTransaction) throw error
      this.exec('ROLLBACK TO shared; RELEASE shared')
      return () => write.reject(error)
    }
  }

  #refuseOverdue(): void {
    const now = performance.now()
    while ((this.#queue[0]?.deadline ?? Infinity) <= now) this.#queue.shift()?.reject(busyError())
  }

  #setDurability(durability: Durability): void {
    if (durability === this.#durability) return
    this.exec(`PRAGMA synchronous = ${SYNCHRONOUS[durability]}`)
    this.#durability = durability
  }

  /** Acquires the write lock. Returns false if another connection holds it. */
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
        // SQLite has already rolled back after a full disk or an I/O error.
        if (database.inTransaction) database.exec('ROLLBACK')
        throw error
      }
    })
  }

  #open(): Database.Database {
    return this.#database ?? refuseClosed()
  }
}

interface PreparedStatement {
  readonly statement: Database.Statement<[SqlValue[]]>
  /** The names of the result columns. */
  readonly columns: readonly string[]
}

/** Prepares a statement whose rows are lists: libsql takes almost twice as long for a row with the names of its columns. */
function prepareStatement(database: Database.Database, sql: string): PreparedStatement {
  const statement = database.prepare<[SqlValue[]]>(sql)
  if (!statement.reader) return { statement, columns: [] }
  return { statement: statement.raw(), columns: statement.columns().map(({ name }) => name) }
}

function toRow(columns: readonly string[], values: unknown): Record<string, unknown> {
  const row: Record<string, unknown> = {}
  // A statement in raw mode returns its rows as lists.
  for (const [index, value] of (values as unknown[]).entries()) row[columns[index] ?? ''] = value
  return row
}

const CHECKPOINT = 'wal_checkpoint(TRUNCATE)'

/** After how many commits the log is moved in the background. */
const COMMITS_PER_MOVE = 200

interface Checkpoints {
  /** Counts a commit, and moves the log from time to time. */
  countCommit(): void
  /** Closes the connection. Resolves when the last move has ended. */
  close(): Promise<void>
}

/**
 * Moves the write-ahead log of a database into its file, in a thread of libsql. SQLite would do this at a commit, and the event loop
 * would wait for the disk: the log, the pages of the file, and the log again.
 */
function startCheckpoints(path: string): Checkpoints {
  let database: AsyncDatabase | undefined
  let running: Promise<void> | undefined
  let commits = 0
  let isClosed = false
  const move = async (): Promise<void> => {
    try {
      database ??= new AsyncDatabase(path, {})
      // Does not wait for other connections, nor they for it.
      await database.exec('PRAGMA wal_checkpoint(PASSIVE)')
    } catch {
      // The log stays, and the next move includes it.
    }
  }
  return {
    countCommit() {
      commits += 1
      if (commits < COMMITS_PER_MOVE || running || isClosed) return
      commits = 0
      running = move().finally(() => {
        running = undefined
      })
    },
    async close() {
      isClosed = true
      await running
      database?.close()
      database = undefined
    },
  }
}

/** About 40 MB. SQLite's default is 1,000. */
const MAX_LOG_PAGES = 10_000

/** At most this many writes share a transaction: other processes wait for it. */
const MAX_SHARED = 50

/** Returns the first writes of a queue that share a transaction. */
function firstShared(queue: readonly QueuedWrite[]): readonly QueuedWrite[] {
  const end = queue.findIndex(({ isShared }) => !isShared)
  return queue.slice(0, Math.min(end === -1 ? queue.length : end, MAX_SHARED))
}

/** Runs a write. Returns what to call after the commit. */
function runWrite({ work, resolve }: QueuedWrite): () => void {
  const result = work()
  return () => resolve(result)
}

/** How long queued writes run without yielding to the event loop, in ms. */
const MAX_RUN_MS = 5

const MAX_PAUSE_MS = 25

/** Returns the delay before the next attempt. It grows with each attempt, with jitter between processes. */
function pauseMs(tries: number): number {
  return Math.min(MAX_PAUSE_MS, 2 ** tries) * (0.5 + Math.random())
}

/** Whether an operation failed only because another connection had locked the database. */
function isBusy(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'busy'
}

function refuseClosed(): never {
  throw closedError()
}

function closedError(): StoreError {
  return new StoreError('closed', 'The store is closed. Open a new one.')
}

function busyError(cause?: unknown): StoreError {
  return new StoreError('busy', 'Another process has locked the database. Try again in a moment.', {
    cause,
  })
}

function translateErrors<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    throw error instanceof StoreError ? error : toStoreError(error)
  }
}

function toStoreError(cause: unknown): StoreError {
  const code = readCode(cause)
  if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')) {
    return new StoreError(
      'corrupt',
      'The file is damaged or not a SQLite database. Restore it or choose another path.',
      {
        cause,
      },
    )
  }
  if (code.startsWith('SQLITE_BUSY')) return busyError(cause)
  if (code === 'SQLITE_FULL') {
    const sentence = 'The disk of the database is full. Nothing was stored. Free some space.'
    return new StoreError('full', sentence, { cause })
  }
  if (code.startsWith('SQLITE_READONLY')) return readOnlyError(cause)
  return new StoreError('unavailable', 'The database is not available. See `cause`.', { cause })
}

export function readOnlyError(cause: unknown): StoreError {
  const sentence =
    'The database is read-only. Give the process the right to write its file and folder.'
  return new StoreError('read-only', sentence, { cause })
}

/**
 * Returns the code of an error of SQLite. libsql 0.5.29 does not name most extended codes, such as 1544 for a folder that may not be
 * written. Their lowest byte is the code.
 */
export function readCode(cause: unknown): string {
  if (!(cause instanceof Database.SqliteError)) return ''
  const [, extended] = /^UNKNOWN_SQLITE_ERROR_(\d+)$/.exec(cause.code) ?? []
  return CODES[Number(extended) & 0xff] ?? cause.code
}

const CODES: Readonly<Record<number, string>> = {
  5: 'SQLITE_BUSY',
  8: 'SQLITE_READONLY',
  11: 'SQLITE_CORRUPT',
  13: 'SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
}
