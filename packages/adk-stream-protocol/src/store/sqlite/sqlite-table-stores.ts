import type { Signals } from '../../relay/relay.ts'
import type {
  BrowserCallStore,
  ChatStore,
  CredentialStore,
  LiveSessionStore,
  Store,
} from '../store.ts'
import type { AttemptRow, BrowserCallRow, Query, QueryValue, SignalRow } from '../table-stores.ts'
import {
  browserCallStore,
  chatStore,
  credentialStore,
  decodeSignal,
  liveSessionStore,
  secretReader,
} from '../table-stores.ts'
import type { Connection, SqlValue } from './connection.ts'
import type { LeaseClock } from './leases.ts'

const IN_CHAT = 'app_name = ?1 AND principal_id = ?2 AND chat_id = ?3'

/** Stores the entries of the chat list, as durable as the conversation itself. */
export function sqliteChats(connection: Connection): ChatStore {
  const { read, write, writeDurably } = queriesOf(connection)
  const remove = writeDurably(`DELETE FROM chats WHERE ${IN_CHAT} RETURNING 1`)
  return chatStore({
    find: read(`
      SELECT chat_id, name, title, created_at, agent FROM chats
      WHERE app_name = ? AND principal_id = ? AND chat_id IN (SELECT value FROM json_each(?))`),
    note: write(`
      INSERT INTO chats (app_name, principal_id, chat_id, title, created_at) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET title = excluded.title, created_at = excluded.created_at`),
    rename: write(`
      INSERT INTO chats (app_name, principal_id, chat_id, name) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET name = excluded.name`),
    assignAgent: writeDurably(`
      INSERT INTO chats (app_name, principal_id, chat_id, agent) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET agent = coalesce(agent, excluded.agent) RETURNING agent`),
    forgetNote: write(`UPDATE chats SET title = NULL, created_at = NULL WHERE ${IN_CHAT}`),
    drop: async (...key) => {
      const dropped = await remove(...key)
      if (dropped.length > 0) await connection.emptyLog()
      return dropped
    },
  })
}

/** Stores calls that wait for clients, as durable as the conversation itself. `clock` is an SQL expression, in ms. */
export function sqliteBrowserCalls(
  connection: Connection,
  clock: string,
  leaseNow: LeaseClock,
): BrowserCallStore {
  const { read, write } = queriesOf(connection)
  const isDue = `app_name = ?1 AND deadline <= ${clock} AND coalesce(taken_at + lease_ms, ?2) <= ?2`
  const findDue = read(`SELECT 1 FROM browser_calls WHERE ${isDue} LIMIT 1`)
  const takeDue = connection.prepare<BrowserCallRow>(`
    UPDATE browser_calls SET taken_at = ?2, lease_ms = ?3
    WHERE call IN (
      SELECT call FROM browser_calls WHERE ${isDue} ORDER BY coalesce(taken_at, 0), deadline LIMIT ?4)
    RETURNING principal_id, chat_id, tool_call_id, message_id`)
  return browserCallStore({
    add: write(`
      INSERT INTO browser_calls (app_name, principal_id, chat_id, tool_call_id, message_id, deadline)
      VALUES (?, ?, ?, ?, ?, ${clock} + ?) ON CONFLICT DO NOTHING`),
    list: read('SELECT * FROM browser_calls ORDER BY deadline LIMIT ?'),
    listChat: read(`SELECT * FROM browser_calls WHERE ${IN_CHAT} ORDER BY deadline LIMIT ?4`),
    drop: write(`
      DELETE FROM browser_calls WHERE ${IN_CHAT} AND tool_call_id IN (SELECT value FROM json_each(?4))`),
    dropChat: write(`DELETE FROM browser_calls WHERE ${IN_CHAT}`),
    takeDue: async (appName, ...rest) => {
      // Usually nothing is due, and this query takes no lock.
      if ((await findDue(appName, leaseNow())).length === 0) return []
      return connection.writeOne(
        () => takeDue.rows(...toSql([appName, leaseNow(), ...rest])),
        'process-death',
      )
    },
  })
}

/** Stores the state of live sessions. `clock` is an SQL expression, in ms. */
export function sqliteLiveSessions(connection: Connection, clock: string): LiveSessionStore {
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

/** Stores encrypted credentials. `clock` is an SQL expression, in ms. */
export function sqliteCredentials(connection: Connection, clock: string): CredentialStore {
  const { read, write, writeDurably } = queriesOf(connection)
  const key = 'app_name = ?1 AND principal_id = ?2 AND name = ?3'
  const findOld = read(`
    SELECT 1 WHERE EXISTS (SELECT 1 FROM sign_in_attempts WHERE expires_at <= ${clock})
    OR EXISTS (SELECT 1 FROM credentials WHERE used_at <= ${clock} - ?1)`)
  const removeAttempts = connection.prepare(
    `DELETE FROM sign_in_attempts WHERE expires_at <= ${clock}`,
  )
  const removeUnused = connection.prepare(`DELETE FROM credentials WHERE used_at <= ${clock} - ?1`)
  return credentialStore({
    list: read(`
      SELECT name, sealed, version, used_at FROM credentials
      WHERE app_name = ?1 AND principal_id = ?2 ORDER BY name`),
    put: writeDurably(`
      INSERT INTO credentials (app_name, principal_id, name, sealed, version, used_at, refresh_until)
      VALUES (?1, ?2, ?3, ?4, 1, ${clock}, 0)
      ON CONFLICT DO UPDATE SET sealed = excluded.sealed, version = version + 1, used_at = excluded.used_at,
        refresh_until = 0
      RETURNING 1`),
    replace: writeDurably(`
      UPDATE credentials SET sealed = ?4, version = version + 1, used_at = ${clock}, refresh_until = 0
      WHERE ${key} AND version = ?5 RETURNING 1`),
    remove: writeDurably(`DELETE FROM credentials WHERE ${key} RETURNING 1`),
    lockRefresh: writeDurably(`
      UPDATE credentials SET refresh_until = ${clock} + ?5
      WHERE ${key} AND version = ?4 AND refresh_until <= ${clock} RETURNING 1`),
    touch: write(`UPDATE credentials SET used_at = ${clock} WHERE ${key}`),
    addAttempt: writeDurably(`
      INSERT INTO sign_in_attempts (app_name, principal_id, id, sealed, expires_at)
      VALUES (?1, ?2, ?3, ?4, ${clock} + ?5)`),
    takeAttempt: writeDurably<AttemptRow>(`
      DELETE FROM sign_in_attempts WHERE app_name = ?1 AND id = ?2
      RETURNING principal_id, sealed, expires_at > ${clock} AS is_valid`),
    removeOld: async (unusedMs) => {
      // Usually nothing is old, and this query takes no lock.
      if ((await findOld(unusedMs)).length === 0) return
      await connection.write(() => {
        removeAttempts.run()
        removeUnused.run(unusedMs)
      })
    },
  })
}

/** A signal that no process has taken for this long is removed. */
const MAX_SIGNAL_AGE_MS = 60_000

/** Signals between the processes on one SQLite file. `clock` is an SQL expression, in ms. */
export function sqliteSignals(connection: Connection, clock: string): Signals {
  const { read, write } = queriesOf(connection)
  const removeOld = connection.prepare(`DELETE FROM signals WHERE sent_at < ${clock} - ?`)
  const insert = connection.prepare(`
    INSERT INTO signals (id, target, sender, kind, body, sent_at) VALUES (?, ?, ?, ?, ?, ${clock})
    ON CONFLICT DO NOTHING`)
  const find = read('SELECT 1 FROM signals WHERE target = ? LIMIT 1')
  const take = write<SignalRow>(
    'DELETE FROM signals WHERE target = ? RETURNING id, sender, kind, body',
  )
  return {
    async send(target, { id, from, kind, body }) {
      await connection.write(() => {
        removeOld.run(MAX_SIGNAL_AGE_MS)
        insert.run(id, target, from, kind, JSON.stringify(body))
      }, 'process-death')
    },
    async take(worker) {
      // Usually there is none, and this query takes no lock.
      if ((await find(worker)).length === 0) return []
      return (await take(worker)).map(decodeSignal)
    },
  }
}

export function sqliteSecrets(connection: Connection): Store['secret'] {
  const { read, writeDurably } = queriesOf(connection)
  return secretReader({
    read: read('SELECT value FROM secrets WHERE name = ?'),
    create: writeDurably('INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING'),
  })
}

/** Returns functions that prepare statements as queries. */
function queriesOf(connection: Connection) {
  const prepareWrite = <Row>(sql: string, ...durability: 'process-death'[]): Query<Row> => {
    const statement = connection.prepare<Row>(sql)
    return (...values) => connection.writeOne(() => statement.rows(...toSql(values)), ...durability)
  }
  return {
    read: <Row>(sql: string): Query<Row> => {
      const statement = connection.prepare<Row>(sql)
      return (...values) => statement.select(...toSql(values))
    },
    write: <Row>(sql: string) => prepareWrite<Row>(sql, 'process-death'),
    /** The write survives a power failure. */
    writeDurably: <Row>(sql: string) => prepareWrite<Row>(sql),
  }
}

/** SQLite has no lists. Its function `json_each` reads them from JSON. */
function toSql(values: readonly QueryValue[]): SqlValue[] {
  return values.map((value) => (isList(value) ? JSON.stringify(value) : value))
}

function isList(value: QueryValue): value is readonly string[] {
  return Array.isArray(value)
}
