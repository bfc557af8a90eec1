import Database from 'libsql'
import { expect } from 'vitest'

/**
 * The times of the leases in a database. A lease that is short enough to wait for also ends while a server gets no CPU time. So tests use
 * long leases, and change their times.
 */
export interface LeaseTimes {
  /** Ends the leases of all servers. A server that runs soon renews its own. */
  expire(): Promise<void>
  /** Makes all leases older by this time. */
  age(ms: number): Promise<void>
  /** Lets more than a lease of this length pass, in parts. In each of them, every server that holds a chat or a call renews its lease. */
  passWhileRenewed(leaseMs: number): Promise<void>
  /** Lets time pass in which no server writes. */
  passUnwritten(ms: number): Promise<void>
  /** Returns when a server last advanced the lease clock. */
  readTick(): Promise<number>
}

type Run = (sql: string) => Promise<readonly Record<string, unknown>[]>

export function sqliteLeaseTimes(path: string): LeaseTimes {
  return leaseTimes(async (sql) => {
    const database = new Database(path, { timeout: 60_000 })
    try {
      if (sql.startsWith('SELECT')) return database.prepare(sql).all() as Record<string, unknown>[]
      database.exec(`BEGIN IMMEDIATE; ${sql}; COMMIT`)
      return []
    } finally {
      database.close()
    }
  })
}

export function postgresLeaseTimes({ run }: { readonly run: Run }): LeaseTimes {
  return leaseTimes(run, [
    `UPDATE relay_workers SET seen_at = 'epoch'`,
    `UPDATE relay_turns SET started_at = 'epoch' WHERE ended_at IS NULL`,
  ])
}

const LATEST = `SELECT max(at) AS at FROM (
    SELECT max(locked_at) AS at FROM chat_locks UNION SELECT max(started_at) FROM approvals
    UNION SELECT max(beat_at) FROM workers) AS times`

/** Counts the servers that hold something and have not renewed their lease since a time. */
const countSilent = (since: number): string => `SELECT count(*) AS silent FROM (
    SELECT worker FROM chat_locks UNION SELECT worker FROM approvals WHERE state = 'executing') AS held
  WHERE NOT EXISTS (SELECT 1 FROM workers WHERE workers.worker = held.worker AND beat_at > ${since})`

/** Returns statements that change the times of all leases. */
const setTimes = (to: (column: string) => string): readonly string[] => [
  `UPDATE chat_locks SET locked_at = ${to('locked_at')}`,
  // A negative time is that of a server that has closed.
  `UPDATE workers SET beat_at = ${to('beat_at')} WHERE beat_at > 0`,
  `UPDATE approvals SET started_at = ${to('started_at')} WHERE started_at IS NOT NULL`,
  `UPDATE approvals SET unreported_since = ${to('unreported_since')} WHERE unreported_since IS NOT NULL`,
]

function leaseTimes(run: Run, ofRelay: readonly string[] = []): LeaseTimes {
  const age = async (ms: number): Promise<void> => {
    await run(setTimes((column) => `${column} - ${ms}`).join('; '))
  }
  const readNumber = async (sql: string): Promise<number> =>
    Number(Object.values((await run(sql))[0] ?? {})[0])
  return {
    age,
    passUnwritten: async (ms) =>
      void (await run(`UPDATE lease_clock SET ticked_at = ticked_at - ${ms}`)),
    readTick: () => readNumber('SELECT ticked_at FROM lease_clock'),
    expire: async () => void (await run([...setTimes(() => '0'), ...ofRelay].join('; '))),
    async passWhileRenewed(leaseMs) {
      for (let part = 0; part < 2; part += 1) {
        const latest = await readNumber(LATEST)
        await age(0.75 * leaseMs)
        await expect.poll(() => readNumber(countSilent(latest)), { interval: 50 }).toBe(0)
      }
    },
  }
}
