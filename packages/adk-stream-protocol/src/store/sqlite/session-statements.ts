import { UNTRANSCRIBED } from '../../agent/user-message.ts'
import { ofAppOrOpenRun } from '../rows.ts'
import type { ListedSession } from '../stored-session-service.ts'
import type { Connection } from './connection.ts'

export interface SessionRow {
  readonly session: number
  readonly seq: number
  readonly epoch: number
}

interface SharedStates {
  readonly app_state: string | null
  readonly user_state: string | null
}

export interface SessionView extends SessionRow, SharedStates {
  readonly updated_at: number
  readonly state: string
}

/** The row of a session that does not exist. */
export interface MissingView extends SharedStates {
  readonly session: null
}

export interface RewindRow {
  readonly session: number
  readonly created_at: number
  readonly initial_state: string
}

export type ListStatements = ReturnType<typeof prepareList>

export type SessionStatements = ReturnType<typeof prepareSessionStatements>

/** Prepares all statements of the session service. */
export function prepareSessionStatements(connection: Connection) {
  return {
    insertSession: connection.prepare(`
      INSERT INTO sessions (app_name, user_id, session_id, seq, epoch, created_at, updated_at, initial_state, state)
      VALUES (?1, ?2, ?3, 0, 0, ?4, ?4, ?5, ?5)
      ON CONFLICT DO NOTHING`),
    // Its first event follows in the same transaction.
    startSession: connection.prepare(`
      INSERT INTO sessions (app_name, user_id, session_id, seq, epoch, created_at, updated_at, initial_state, state)
      VALUES (?1, ?2, ?3, 1, 0, ?4, ?4, '{}', ?5)
      ON CONFLICT DO NOTHING`),
    // Always returns one row: a new session begins with the shared states.
    viewSession: connection.prepare<SessionView | MissingView>(`
      SELECT session, seq, epoch, updated_at, sessions.state, app_states.state AS app_state, user_states.state AS user_state
      FROM (SELECT ?1 AS app_name, ?2 AS user_id, ?3 AS session_id) LEFT JOIN sessions USING (app_name, user_id, session_id)
        LEFT JOIN app_states USING (app_name) LEFT JOIN user_states USING (app_name, user_id)`),
    readState: connection.prepare<{ state: string }>(`
      SELECT state FROM sessions WHERE app_name = ? AND user_id = ? AND session_id = ?`),
    deleteSession: connection.prepare<{ session: number }>(`
      DELETE FROM sessions WHERE app_name = ? AND user_id = ? AND session_id = ? RETURNING session`),

    readEvents: connection.prepare<{ seq: number; data: string }>(`
      SELECT seq, data FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?`),
    // An append reads nothing back, because reading a row costs libsql more than writing one. The session has the number of the event.
    insertEvent: connection.prepare(`
      INSERT INTO events (session, seq, event_id, timestamp, delta, data)
      SELECT session, seq, ?4, ?5, ?6, ?7 FROM sessions
      WHERE app_name = ?1 AND user_id = ?2 AND session_id = ?3 AND ?10 = (
        SELECT count(*) FROM chat_locks
        WHERE app_name ${ofAppOrOpenRun('?1')} AND principal_id = ?2 AND chat_id = ?3 AND token IN (?8, ?9))
      ON CONFLICT (session, event_id) DO NOTHING`),
    extendSession: connection.prepare(`
      UPDATE sessions SET seq = seq + 1, updated_at = ?4, state = coalesce(?5, state)
      WHERE app_name = ?1 AND user_id = ?2 AND session_id = ?3`),
    replaceEvent: connection.prepare(`
      UPDATE events SET timestamp = ?5, delta = ?6, data = ?7
      WHERE session = (SELECT session FROM sessions WHERE app_name = ?1 AND user_id = ?2 AND session_id = ?3)
        AND event_id = ?4`),
    changeSession: connection.prepare(`
      UPDATE sessions SET epoch = epoch + 1, updated_at = ?4, state = coalesce(?5, state)
      WHERE app_name = ?1 AND user_id = ?2 AND session_id = ?3`),

    isLocked: connection.prepare<{ locked: number }>(`
      SELECT 1 AS locked FROM chat_locks
      WHERE app_name ${ofAppOrOpenRun('?1')} AND principal_id = ?2 AND chat_id = ?3 AND token = ?4`),

    findFirstMessage: connection.prepare<{ data: string }>(`
      SELECT data FROM events
      WHERE session = (SELECT session FROM sessions WHERE app_name = ? AND user_id = ? AND session_id = ?)
        AND data ->> '$.author' = 'user'
        AND EXISTS (
          SELECT 1 FROM json_each(data, '$.content.parts')
          WHERE trim(coalesce(value ->> '$.text', '')) NOT IN ('', '${UNTRANSCRIBED}') OR value ->> '$.inlineData' IS NOT NULL)
      ORDER BY seq LIMIT 1`),

    findMissingCall: connection.prepare<{ value: string }>(`
      SELECT wanted.value FROM json_each(?4) AS wanted WHERE NOT EXISTS (
        SELECT 1 FROM events, json_each(events.data, '$.content.parts') AS part
        WHERE events.session = (SELECT session FROM sessions WHERE app_name = ?1 AND user_id = ?2 AND session_id = ?3)
          AND part.value ->> '$.functionCall.id' = wanted.value)`),

    readDataVersion: connection.prepare<{ data_version: number }>(
      'SELECT data_version FROM pragma_data_version',
    ),
    // One row for each user: reading a row costs libsql more than joining the values.
    readTags: connection.prepare<{ user_id: string; tags: string }>(`
      SELECT user_id, json_group_object(session_id, session || '.' || epoch || '.' || seq) AS tags
      FROM sessions WHERE app_name = ? AND user_id IN (SELECT value FROM json_each(?)) GROUP BY user_id`),

    findRewind: connection.prepare<RewindRow>(`
      SELECT session, created_at, initial_state
      FROM sessions WHERE app_name = ? AND user_id = ? AND session_id = ?`),
    findEvent: connection.prepare<{ seq: number }>(
      'SELECT seq FROM events WHERE session = ? AND event_id = ?',
    ),
    deleteEventsFrom: connection.prepare(`
      DELETE FROM events WHERE session = ? AND seq >= ?
      AND event_id NOT IN (SELECT value FROM json_each(?))`),
    readDeltas: connection.prepare<{ delta: string }>(`
      SELECT delta FROM events WHERE session = ? AND delta IS NOT NULL ORDER BY seq`),
    readLastTimestamp: connection.prepare<{ timestamp: number }>(`
      SELECT timestamp FROM events WHERE session = ? ORDER BY seq DESC LIMIT 1`),

    ...prepareShared(connection),
    listOfApp: prepareList(connection, 'app_name = ?'),
    listOfUser: prepareList(connection, 'app_name = ? AND user_id = ?'),
  }
}

/** Prepares the statements for state that sessions share. */
function prepareShared(connection: Connection) {
  return {
    readAppState: connection.prepare<{ state: string }>(
      'SELECT state FROM app_states WHERE app_name = ?',
    ),
    putAppState: connection.prepare(`
      INSERT INTO app_states (app_name, state) VALUES (?, ?)
      ON CONFLICT (app_name) DO UPDATE SET state = excluded.state`),
    readUserState: connection.prepare<{ state: string }>(`
      SELECT state FROM user_states WHERE app_name = ? AND user_id = ?`),
    putUserState: connection.prepare(`
      INSERT INTO user_states (app_name, user_id, state) VALUES (?, ?, ?)
      ON CONFLICT (app_name, user_id) DO UPDATE SET state = excluded.state`),
  }
}

function prepareList(connection: Connection, condition: string) {
  const select = (order: string) =>
    connection.prepare<ListedSession>(`
      SELECT user_id, session_id, updated_at FROM sessions WHERE ${condition} ORDER BY ${order} LIMIT ? OFFSET ?`)
  return {
    count: connection.prepare<{ total: number }>(
      `SELECT count(*) AS total FROM sessions WHERE ${condition}`,
    ),
    created: select('session'),
    ascending: select('updated_at, session_id, user_id'),
    descending: select('updated_at DESC, session_id, user_id'),
  }
}
