import { toSql } from '../queries.ts'
import type { BrowserCallStore } from '../../tables/browser-calls.ts'
import type { BrowserCallRow } from '../../tables/browser-calls.ts'
import { openBrowserCalls } from '../../tables/browser-calls.ts'
import type { Connection } from '../connection.ts'
import type { SqliteClocks, SqliteFeature } from '../feature-tables.ts'
import { toDatabase } from '../feature-tables.ts'

export const sqliteBrowserCalls: SqliteFeature<BrowserCallStore> = {
  create: `
  CREATE TABLE browser_calls (
    call INTEGER PRIMARY KEY,
    app_name TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    tool_call_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    deadline REAL NOT NULL,
    -- When a process took the expired call, to end it.
    taken_at REAL,
    lease_ms REAL NOT NULL DEFAULT 0,
    UNIQUE (app_name, principal_id, chat_id, tool_call_id)
  ) STRICT;
  CREATE INDEX browser_calls_due ON browser_calls (app_name, deadline);
  `,
  owned: ['browser_calls'],
  ofChats: ['browser_calls'],
  keepsChats: 'browser_calls',
  leased: 'browser_calls WHERE taken_at IS NOT NULL',
  leaseTime: { table: 'browser_calls', column: 'taken_at' },
  open,
}

/** Stores calls that wait for clients, as durable as the conversation itself. */
function open(connection: Connection, { clock, leaseClock }: SqliteClocks): BrowserCallStore {
  const isDue = `app_name = ?1 AND deadline <= ${clock} AND coalesce(taken_at + lease_ms, ?2) <= ?2`
  const findDue = connection.prepare(`SELECT 1 FROM browser_calls WHERE ${isDue} LIMIT 1`)
  const takeDue = connection.prepare<BrowserCallRow>(`
    UPDATE browser_calls SET taken_at = ?2, lease_ms = ?3
    WHERE call IN (
      SELECT call FROM browser_calls WHERE ${isDue} ORDER BY coalesce(taken_at, 0), deadline LIMIT ?4)
    RETURNING principal_id, chat_id, tool_call_id, message_id`)
  return openBrowserCalls(toDatabase(connection, clock), async (appName = '', ...rest) => {
    // Usually nothing is due, and this query takes no lock.
    if ((await findDue.select(...toSql([appName, leaseClock()]))).length === 0) return []
    return connection.write(
      () => takeDue.rows(...toSql([appName, leaseClock(), ...rest])),
      'process-death',
    )
  })
}
