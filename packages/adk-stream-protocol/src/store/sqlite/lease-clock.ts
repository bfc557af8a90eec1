import type { Connection } from './connection.ts'

/**
 * The clock for leases, in ms: the monotonic clock of the system. All processes of a machine share it. It cannot be
 * set, and it restarts with the machine.
 */
export type LeaseClock = () => number

export const monotonicClock: LeaseClock = () => Number(process.hrtime.bigint()) / 1e6

/**
 * Ends leases from before the last restart of the machine. Only their times can lie in the future, because every
 * lease time is read inside the write transaction that stores it. Other old leases expire on their own.
 */
export async function endEarlierLeases(connection: Connection, clock: LeaseClock): Promise<void> {
  const find = connection.prepare<{ later: number }>(`
    SELECT 1 AS later WHERE
      EXISTS (SELECT 1 FROM workers WHERE beat_at > ?1) OR EXISTS (SELECT 1 FROM chat_locks WHERE locked_at > ?1)
      OR EXISTS (SELECT 1 FROM approvals WHERE state = 'executing' AND started_at > ?1)
      OR EXISTS (SELECT 1 FROM approvals WHERE untold_since IS NOT NULL AND untold_since > ?1)
      OR EXISTS (SELECT 1 FROM waits WHERE taken_at > ?1)`)
  // Usually there are none, and this query takes no lock.
  if ((await find.select(clock())).length === 0) return
  const steps = [
    'DELETE FROM workers WHERE beat_at > ?1',
    'DELETE FROM chat_locks WHERE locked_at > ?1',
    `UPDATE approvals SET started_at = 0 WHERE state = 'executing' AND started_at > ?1`,
    'UPDATE approvals SET untold_since = 0 WHERE untold_since IS NOT NULL AND untold_since > ?1',
    'UPDATE waits SET taken_at = NULL WHERE taken_at > ?1',
  ].map((sql) => connection.prepare(sql))
  await connection.write(() => {
    const now = clock()
    for (const step of steps) step.run(now)
  })
}
