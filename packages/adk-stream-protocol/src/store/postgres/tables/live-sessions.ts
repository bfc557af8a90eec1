import { IN_CHAT, CHAT_KEY, queryOf } from '../queries.ts'
import type { LiveSessionStore } from '../../tables/live-sessions.ts'
import { liveSessionStore } from '../../tables/live-sessions.ts'
import type { PostgresFeature, PostgresParts } from '../feature-tables.ts'

export const postgresLiveSessions: PostgresFeature<LiveSessionStore> = {
  create: `
  -- What another instance needs to continue a live session, encrypted.
  CREATE TABLE $schema.live_sessions (
    app_name text COLLATE "C" NOT NULL,
    principal_id text COLLATE "C" NOT NULL,
    chat_id text COLLATE "C" NOT NULL,
    state bytea NOT NULL,
    saved_at double precision NOT NULL,
    PRIMARY KEY (app_name, principal_id, chat_id)
  );
  `,
  owned: ['live_sessions'],
  ofChats: ['live_sessions'],
  open,
}

/** Stores the state of live sessions. */
function open({ turns: database, schema, clocks: { clock } }: PostgresParts): LiveSessionStore {
  const query = queryOf(database)
  const sessions = `${schema}.live_sessions`
  return liveSessionStore({
    save: query(`
      WITH old AS (
        DELETE FROM ${sessions} WHERE saved_at < (SELECT ${clock}) - $9::double precision AND NOT (${IN_CHAT}))
      INSERT INTO ${sessions} (app_name, principal_id, chat_id, state, saved_at)
      SELECT $1, $2, $3, $4::bytea, ${clock} FROM ${schema}.chat_locks
      -- A process that takes over the live session waits, and then finds this state.
      WHERE app_name = $5 AND principal_id = $6 AND chat_id = $7 AND token = $8 FOR SHARE
      ON CONFLICT ${CHAT_KEY} DO UPDATE SET state = excluded.state, saved_at = excluded.saved_at
      RETURNING 1 AS saved`),
    find: query(`SELECT state FROM ${sessions} WHERE ${IN_CHAT}`),
    drop: query(`DELETE FROM ${sessions} WHERE ${IN_CHAT}`),
  })
}
