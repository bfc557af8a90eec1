import { temporaryDirectory } from '../../../../../test/support/temporary-directory.ts'
import type { ApprovalStore } from '../../../src/approvals/approval-store.ts'
import { MemoryApprovalStore } from './memory-approval-store.ts'
import type { Connection } from '../../../src/store/sqlite/connection.ts'
import { openDatabase } from '../../../src/store/sqlite/open-database.ts'
import { SqliteApprovalStore } from '../../../src/store/sqlite/sqlite-approval-store.ts'
import { NOON } from './fixture.ts'

/** A store whose clock only moves when a test moves it. */
export interface Subject extends AsyncDisposable {
  readonly store: ApprovalStore
  setClock(at: number): void | Promise<void>
  /** Closes all connections, and returns the store as a new process opens it. */
  restart(): Promise<ApprovalStore>
}

export const subjects: Record<string, () => Promise<Subject>> = {
  'in memory': async () => {
    let now = NOON
    const store = new MemoryApprovalStore(
      () => now,
      () => now,
    )
    return {
      store,
      setClock: (at) => {
        now = at
      },
      restart: async () => store,
      [Symbol.asyncDispose]: async () => {},
    }
  },
  'sqlite in memory': async () => {
    const connection = await openWithClock(':memory:')
    const store = new SqliteApprovalStore(connection, clocksOf(connection))
    return {
      store,
      setClock: (at) => moveClock(connection, at),
      restart: async () => store,
      [Symbol.asyncDispose]: async () => connection.close(),
    }
  },
  'two connections to one sqlite file': async () => {
    const folder = await temporaryDirectory()
    const path = folder.file('ledger.db')
    let open = await openPair(path)
    return {
      store: inTurns(
        open.map((connection) => new SqliteApprovalStore(connection, clocksOf(connection))),
      ),
      setClock: (at) => open.slice(0, 1).forEach((connection) => moveClock(connection, at)),
      restart: async () => {
        for (const connection of open) connection.close()
        open = await openPair(path)
        return inTurns(
          open.map((connection) => new SqliteApprovalStore(connection, clocksOf(connection))),
        )
      },
      [Symbol.asyncDispose]: async () => {
        for (const connection of open) connection.close()
        await folder[Symbol.asyncDispose]()
      },
    }
  },
}

/** A clock in the database, so that all connections read the same one. */
export const CLOCK = '(SELECT at FROM test_clock)'

/** The clock of the database, for deadlines and for leases. */
export function clocksOf(connection: Connection): { clock: string; leaseClock: () => number } {
  const read = connection.prepare<{ at: number }>(`SELECT ${CLOCK} AS at`)
  return { clock: CLOCK, leaseClock: () => read.rows()[0]?.at ?? 0 }
}

export async function openWithClock(path: string): Promise<Connection> {
  const connection = await openDatabase(path)
  connection.exec('CREATE TABLE IF NOT EXISTS test_clock (only INTEGER PRIMARY KEY, at INTEGER)')
  connection.exec(`INSERT INTO test_clock VALUES (1, ${NOON}) ON CONFLICT DO NOTHING`)
  return connection
}

export function moveClock(connection: Connection, at: number): void {
  connection.exec(`UPDATE test_clock SET at = ${at}`)
}

async function openPair(path: string): Promise<Connection[]> {
  return [await openWithClock(path), await openWithClock(path)]
}

/** A store that sends its calls to several stores in turn. */
function inTurns(stores: readonly ApprovalStore[]): ApprovalStore {
  let turn = 0
  const next = (): ApprovalStore => {
    turn += 1
    const store = stores[turn % stores.length]
    if (store === undefined) throw new Error('no stores')
    return store
  }
  return {
    now: () => next().now(),
    insert: (...given) => next().insert(...given),
    get: (id) => next().get(id),
    findByCall: (...given) => next().findByCall(...given),
    replace: (transition) => next().replace(transition),
    replaceAll: (transitions) => next().replaceAll(transitions),
    list: (filter) => next().list(filter),
    due: (limit) => next().due(limit),
    unreported: (filter) => next().unreported(filter),
    markReported: (...given) => next().markReported(...given),
    audit: (filter) => next().audit(filter),
    lastSeq: () => next().lastSeq(),
    heartbeat: (worker) => next().heartbeat(worker),
    stale: (leaseMs) => next().stale(leaseMs),
    lockChat: (...given) => next().lockChat(...given),
    findLockHolder: (given) => next().findLockHolder(given),
    listLocks: (worker) => next().listLocks(worker),
    listLockedByOthers: (filter) => next().listLockedByOthers(filter),
    unlockChat: (...given) => next().unlockChat(...given),
    deleteChat: (...given) => next().deleteChat(...given),
  }
}
