import { IN_CHAT, queriesOf, toSql } from '../queries.ts'
import type { LiveSessionStore } from '../../tables/live-sessions.ts'
import { liveSessionStore } from '../../tables/live-sessions.ts'
import type { Connection } from '../connection.ts'
import type { SqliteClocks, SqliteFeature } from '../feature-tables.ts'

export const sqliteLiveSessions: SqliteFeature<LiveSessionStore> = {
  create: `
  -- What another process needs to continue a live session, encrypted.
  CREATE TABLE live_sessions (
    app_name TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    state BLOB NOT NULL,
    saved_at REAL NOT NULL,
    PRIMARY KEY (app_name, principal_id, chat_id)
  ) STRICT;
  `,
  owned: ['live_sessions'],
  ofChats: ['live_sessions'],
  open,
}

/** Stores the state of live sessions. */
function open(connection: Connection, { clock }: SqliteClocks): LiveSessionStore {
  const { read, write } = queriesOf(connection)
  const removeOld = connection.prepare(`DELETE FROM live_sessions WHERE saved_at < ${clock} - ?`)
  const save = connection.prepare<unknown>(`
    INSERT INTO live_sessions (app_name, principal_id, chat_id, state, saved_at)
    SELECT ?1, ?2, ?3, ?4, ${clock} FROM chat_locks
    WHERE app_name = ?5 AND principal_id = ?6 AND chat_id = ?7 AND token = ?8
    ON CONFLICT DO UPDATE SET state = excluded.state, saved_at = excluded.saved_at
    RETURNING 1 AS saved`)
  const find = read<{ state: ArrayBuffer }>(`SELECT state FROM live_sessions WHERE ${IN_CHAT}`)
  const remove = write(`DELETE FROM live_sessions WHERE ${IN_CHAT}`)
  return liveSessionStore({
    save: (...values) => {
      const row = toSql(values)
      return connection.write(() => {
        removeOld.run(...row.slice(-1))
        return save.rows(...row.slice(0, -1))
      }, 'process-death')
    },
    find,
    // Most chats have none, and the first query takes no lock.
    drop: async (...key) => ((await find(...key)).length === 0 ? [] : remove(...key)),
  })
}
