import type {
  BrowserCallStore,
  ChatStore,
  CredentialStore,
  LiveSessionStore,
  Store,
} from '../store.ts'
import type { Query } from '../table-stores.ts'
import {
  browserCallStore,
  chatStore,
  credentialStore,
  liveSessionStore,
  secretReader,
} from '../table-stores.ts'
import type { Clocks, Database } from './database.ts'

const IN_CHAT = 'app_name = $1 AND principal_id = $2 AND chat_id = $3'
const CHAT_KEY = '(app_name, principal_id, chat_id)'

/** Stores the entries of the chat list. `schema` is a quoted name, here and below. */
export function postgresChats(database: Database, schema: string): ChatStore {
  const query = queryOf(database)
  const chats = `${schema}.chats`
  return chatStore({
    find: query(`
      SELECT chat_id, name, title, created_at, agent FROM ${chats}
      WHERE app_name = $1 AND principal_id = $2 AND chat_id = ANY ($3::text[])`),
    note: query(`
      INSERT INTO ${chats} (app_name, principal_id, chat_id, title, created_at)
      VALUES ($1, $2, $3, $4, $5::double precision)
      ON CONFLICT ${CHAT_KEY} DO UPDATE SET title = excluded.title, created_at = excluded.created_at`),
    rename: query(`
      INSERT INTO ${chats} (app_name, principal_id, chat_id, name) VALUES ($1, $2, $3, $4)
      ON CONFLICT ${CHAT_KEY} DO UPDATE SET name = excluded.name`),
    assignAgent: query(`
      INSERT INTO ${chats} AS chat (app_name, principal_id, chat_id, agent) VALUES ($1, $2, $3, $4)
      ON CONFLICT ${CHAT_KEY} DO UPDATE SET agent = coalesce(chat.agent, excluded.agent) RETURNING agent`),
    forgetNote: query(`UPDATE ${chats} SET title = NULL, created_at = NULL WHERE ${IN_CHAT}`),
    drop: query(`DELETE FROM ${chats} WHERE ${IN_CHAT}`),
  })
}

/** Stores calls that wait for clients. */
export function postgresBrowserCalls(
  database: Database,
  schema: string,
  { clock, leaseClock }: Clocks,
): BrowserCallStore {
  const query = queryOf(database)
  const calls = `${schema}.browser_calls`
  return browserCallStore({
    add: query(`
      INSERT INTO ${calls} (app_name, principal_id, chat_id, tool_call_id, message_id, deadline)
      SELECT $1, $2, $3, $4, $5, ${clock} + $6::double precision ON CONFLICT DO NOTHING`),
    list: query(`SELECT * FROM ${calls} ORDER BY deadline LIMIT $1`),
    listChat: query(`SELECT * FROM ${calls} WHERE ${IN_CHAT} ORDER BY deadline LIMIT $4`),
    drop: query(`DELETE FROM ${calls} WHERE ${IN_CHAT} AND tool_call_id = ANY ($4::text[])`),
    dropChat: query(`DELETE FROM ${calls} WHERE ${IN_CHAT}`),
    // Instances that sweep at the same time skip each other's rows.
    takeDue: query(`
      WITH now AS MATERIALIZED (SELECT ${leaseClock} AS at),
      due AS MATERIALIZED (
        SELECT call FROM ${calls}
        WHERE app_name = $1 AND deadline <= (SELECT ${clock})
        AND (taken_at IS NULL OR taken_at + lease_ms <= (SELECT at FROM now))
        ORDER BY coalesce(taken_at, 0), deadline LIMIT $3 FOR UPDATE SKIP LOCKED)
      UPDATE ${calls} SET taken_at = (SELECT at FROM now), lease_ms = $2::double precision
      WHERE call IN (SELECT call FROM due)
      RETURNING principal_id, chat_id, tool_call_id, message_id`),
  })
}

/** Stores the state of live sessions. */
export function postgresLiveSessions(
  database: Database,
  schema: string,
  { clock }: Clocks,
): LiveSessionStore {
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

/** Stores encrypted credentials. */
export function postgresCredentials(
  database: Database,
  schema: string,
  { clock }: Clocks,
): CredentialStore {
  const query = queryOf(database)
  const [credentials, attempts] = [`${schema}.credentials`, `${schema}.sign_in_attempts`]
  const key = 'app_name = $1 AND principal_id = $2 AND name = $3'
  const removeAttempts = query(`DELETE FROM ${attempts} WHERE expires_at <= ${clock}`)
  const removeUnused = query(
    `DELETE FROM ${credentials} WHERE used_at <= ${clock} - $1::double precision`,
  )
  return credentialStore({
    list: query(`
      SELECT name, sealed, version, used_at FROM ${credentials}
      WHERE app_name = $1 AND principal_id = $2 ORDER BY name`),
    put: query(`
      INSERT INTO ${credentials} AS known (app_name, principal_id, name, sealed, version, used_at, refresh_until)
      SELECT $1, $2, $3, $4::bytea, 1, ${clock}, 0
      ON CONFLICT (app_name, principal_id, name) DO UPDATE SET sealed = excluded.sealed,
        version = known.version + 1, used_at = excluded.used_at, refresh_until = 0
      RETURNING 1`),
    replace: query(`
      UPDATE ${credentials} SET sealed = $4::bytea, version = version + 1, used_at = ${clock}, refresh_until = 0
      WHERE ${key} AND version = $5 RETURNING 1`),
    remove: query(`DELETE FROM ${credentials} WHERE ${key} RETURNING 1`),
    lockRefresh: query(`
      UPDATE ${credentials} SET refresh_until = ${clock} + $5::double precision
      WHERE ${key} AND version = $4 AND refresh_until <= ${clock} RETURNING 1`),
    touch: query(`UPDATE ${credentials} SET used_at = ${clock} WHERE ${key}`),
    addAttempt: query(`
      INSERT INTO ${attempts} (app_name, principal_id, id, sealed, expires_at)
      SELECT $1, $2, $3, $4::bytea, ${clock} + $5::double precision`),
    takeAttempt: query(`
      DELETE FROM ${attempts} WHERE app_name = $1 AND id = $2
      RETURNING principal_id, sealed, expires_at > ${clock} AS is_valid`),
    removeOld: async (unusedMs) => {
      await removeAttempts()
      await removeUnused(unusedMs)
    },
  })
}

export function postgresSecrets(database: Database, schema: string): Store['secret'] {
  const query = queryOf(database)
  return secretReader({
    read: query(`SELECT value FROM ${schema}.secrets WHERE name = $1`),
    create: query(
      `INSERT INTO ${schema}.secrets (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
    ),
  })
}

function queryOf(database: Database): <Row>(sql: string) => Query<Row> {
  return (sql) =>
    (...values) =>
      database.query(sql, values)
}
