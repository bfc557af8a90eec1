import type { Connection } from './connection.ts'

/**
 * The clock that leases go by, in ms: the system's monotonic clock, which all processes of one machine read alike and which nobody
 * can set. It begins anew when the machine does.
 */
export type LeaseClock = () => number

export const monotonicClock: LeaseClock = () => Number(process.hrtime.bigint()) / 1e6

/**
 * Ends the leases of before the machine was last started. Only they can lie in the future, because every time is read while no
 * other process writes; those that happen not to are as old as they look, and end by themselves.
 */
export async function endEarlierLeases(connection: Connection, clock: LeaseClock): Promise<void> {
  const find = connection.prepare<{ later: number }>(`
    SELECT 1 AS later WHERE
      EXISTS (SELECT 1 FROM workers WHERE beat_at > ?1) OR EXISTS (SELECT 1 FROM chat_locks WHERE locked_at > ?1)
      OR EXISTS (SELECT 1 FROM approvals WHERE state = 'executing' AND started_at > ?1)
      OR EXISTS (SELECT 1 FROM approvals WHERE untold_since IS NOT NULL AND untold_since > ?1)
      OR EXISTS (SELECT 1 FROM waits WHERE taken_at > ?1)`)
  // Mostly there are none, and to find that out needs no lock.
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
