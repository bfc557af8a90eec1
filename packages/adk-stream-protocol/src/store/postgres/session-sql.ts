import { createHash } from 'node:crypto'

import { ofAppOrOpenRun } from '../rows.ts'
import type { SessionState, StateWrites } from '../stored-session-service.ts'
import { applyDelta, decodeDelta } from '../stored-session-service.ts'
import { encodeJson } from '../stored-json.ts'

/** A statement that appends an event differs by what it has to check and to write. */
export interface AppendShape {
  /** Whether this process has locked the chat. */
  readonly isFenced: boolean
  /** Whether the session must not have changed since its calls were read. */
  readonly isExpected: boolean
  /** Whether the event replaces a stored one. */
  readonly isReplacement: boolean
  /** The scopes of the state that the event writes. */
  readonly scopes: readonly Scope[]
}

export const SCOPES = ['session', 'app', 'user'] as const

type Scope = (typeof SCOPES)[number]

export type SessionSql = ReturnType<typeof sessionSql>

const IN_SESSION = 'app_name = $1 AND user_id = $2 AND session_id = $3'

/** How many events to read at once. */
export const PAGE_EVENTS = 256

/** Returns all statements of the session service. `schema` is a quoted name. */
export function sessionSql(schema: string) {
  const pairs = "'[' || string_agg('[' || key || ',' || value || ']', ',' ORDER BY id) || ']'"
  return {
    insert: `
      WITH found AS (
        INSERT INTO ${schema}.sessions AS known
          (app_name, user_id, session_id, created_at, updated_at, initial_state, write_id)
        VALUES ($1, $2, $3, $4::double precision, $4, $5, $6)
        -- An earlier attempt may have been committed although its acknowledgement was lost.
        ON CONFLICT ON CONSTRAINT sessions_key DO UPDATE SET write_id = excluded.write_id
        WHERE known.write_id = excluded.write_id
        RETURNING session, updated_at),
      state AS (
        INSERT INTO ${schema}.session_state (session, id, key, value)
        SELECT session, pair.* FROM found, unnest($7::text[], $8::text[], $9::text[]) pair ON CONFLICT DO NOTHING)
      SELECT updated_at,
        (SELECT ${pairs} FROM ${schema}.app_state WHERE app_name = $1) AS app_state,
        (SELECT ${pairs} FROM ${schema}.user_state WHERE app_name = $1 AND user_id = $2) AS user_state
      FROM found`,
    read: `SELECT * FROM ${schema}.read_session($1, $2, $3, $4::bigint, $5::bigint, ${PAGE_EVENTS})`,
    delete: `DELETE FROM ${schema}.sessions WHERE ${IN_SESSION}`,
    findUserEvents: `
      SELECT events.seq, data FROM ${schema}.sessions JOIN ${schema}.events USING (session)
      WHERE ${IN_SESSION} AND events.seq > $4 ORDER BY events.seq LIMIT 16`,
    /** Which of the calls the session contains, and its epoch. */
    findCalls: `
      SELECT epoch, NOT EXISTS (
        SELECT FROM unnest($4::text[]) wanted WHERE NOT EXISTS (
          SELECT FROM ${schema}.events
          WHERE events.session = sessions.session AND call_ids IS NOT NULL AND wanted = ANY (call_ids))) AS complete
      FROM ${schema}.sessions WHERE ${IN_SESSION}`,
    findLocks: `
      SELECT app_name, worker, token FROM ${schema}.chat_locks
      WHERE app_name ${ofAppOrOpenRun('$1')} AND principal_id = $2 AND chat_id = $3 FOR SHARE`,
    lockSession: `
      SELECT session, created_at, initial_state FROM ${schema}.sessions WHERE ${IN_SESSION} FOR NO KEY UPDATE`,
    findEvent: `SELECT seq FROM ${schema}.events WHERE session = $1 AND event_id = $2`,
    deleteEventsFrom: `
      DELETE FROM ${schema}.events WHERE session = $1 AND seq >= $2 AND event_id <> ALL ($3::text[])`,
    readDeltas: `SELECT delta FROM ${schema}.events WHERE session = $1 AND delta IS NOT NULL ORDER BY seq`,
    readLastTimestamp: `SELECT timestamp FROM ${schema}.events WHERE session = $1 ORDER BY seq DESC LIMIT 1`,
    clearState: `DELETE FROM ${schema}.session_state WHERE session = $1`,
    putState: `
      INSERT INTO ${schema}.session_state (session, id, key, value)
      SELECT $1, pair.* FROM unnest($2::text[], $3::text[], $4::text[]) pair`,
    touchSession: `
      UPDATE ${schema}.sessions SET epoch = nextval('${schema}.epochs'), updated_at = $2::double precision
      WHERE session = $1`,
    list: (isOfUser: boolean, order: 'asc' | 'desc' | undefined) =>
      listSessions(schema, isOfUser, order),
    append: (shape: AppendShape) => appendEvent(schema, shape),
  }
}

function listSessions(
  schema: string,
  isOfUser: boolean,
  order: 'asc' | 'desc' | undefined,
): string {
  const condition = isOfUser ? 'app_name = $1 AND user_id = $4' : 'app_name = $1'
  const direction = order === 'desc' ? ' DESC' : ''
  const columns = order === undefined ? 'session' : `updated_at${direction}, session_id, user_id`
  return `
    WITH total AS MATERIALIZED (SELECT count(*) AS total FROM ${schema}.sessions WHERE ${condition}),
    page AS MATERIALIZED (
      SELECT row_number() OVER (ORDER BY ${columns}) AS place, user_id, session_id, updated_at
      FROM ${schema}.sessions WHERE ${condition} ORDER BY ${columns} LIMIT $2::bigint OFFSET $3::bigint)
    SELECT total, user_id, session_id, updated_at FROM total LEFT JOIN page ON TRUE ORDER BY place`
}

/** The first parameters are the same in all shapes. */
const APPEND_PARAMETERS = 9

function appendEvent(schema: string, shape: AppendShape): string {
  const { isFenced, isExpected, isReplacement, scopes } = shape
  // The lock row stays locked until the commit. A process that takes over the chat waits, and then sees the event.
  const held = `
    held AS MATERIALIZED (
      SELECT 1 FROM ${schema}.chat_locks
      WHERE app_name ${ofAppOrOpenRun('$1')} AND principal_id = $2 AND chat_id = $3 AND token = ANY ($4::text[]) FOR SHARE),`
  const change = isReplacement ? `epoch = nextval('${schema}.epochs')` : 'seq = seq + 1'
  const store = isReplacement
    ? `UPDATE ${schema}.events SET timestamp = $6::double precision, call_ids = $7::text[], delta = $8, data = $9
       FROM changed WHERE events.session = changed.session AND event_id = $5 RETURNING 1`
    : `INSERT INTO ${schema}.events (session, seq, event_id, timestamp, call_ids, delta, data)
       SELECT session, seq, $5, $6::double precision, $7::text[], $8, $9 FROM changed RETURNING 1`
  let parameter = APPEND_PARAMETERS
  const next = () => `$${(parameter += 1)}`
  const epoch = isExpected ? ` AND epoch = ${next()}::bigint` : ''
  const writes = scopes.map((scope) => writeState(schema, scope, [next(), next(), next(), next()]))
  return `
    WITH ${isFenced ? held : ''}
    changed AS (
      UPDATE ${schema}.sessions SET ${change}, updated_at = $6::double precision
      WHERE ${IN_SESSION}${isFenced ? ' AND (SELECT count(*) FROM held) = cardinality($4::text[])' : ` AND $4::text[] = '{}'`}${epoch}
      RETURNING session, seq),
    stored AS (${store})
    ${writes.map((write) => `,${write}`).join('')}
    SELECT 1 AS done FROM stored`
}

/** Returns the part of a statement that writes keys of one scope: ids, keys and values to set, and ids to remove. */
function writeState(schema: string, scope: Scope, [ids, keys, values, removed]: string[]): string {
  const table = `${schema}.${scope}_state`
  const columns = { session: 'session', app: 'app_name', user: 'app_name, user_id' }[scope]
  const owner = { session: 'changed.session', app: '$1', user: '$1, $2' }[scope]
  const own = {
    session: `${scope}_state.session = changed.session`,
    app: `${scope}_state.app_name = $1`,
    user: `${scope}_state.app_name = $1 AND ${scope}_state.user_id = $2`,
  }[scope]
  return `
    set_${scope} AS (
      INSERT INTO ${table} (${columns}, id, key, value)
      SELECT ${owner}, pair.* FROM changed, unnest(${ids}::text[], ${keys}::text[], ${values}::text[]) pair
      ON CONFLICT (${columns}, id) DO UPDATE SET value = excluded.value),
    removed_${scope} AS (
      DELETE FROM ${table} USING changed WHERE ${own} AND id = ANY (${removed}::text[]))`
}

/** The columns of state to write: ids, keys and values to set, and ids to remove. */
type StateColumns = [ids: string[], keys: string[], values: string[], removed: string[]]

/** Splits writes into columns. All writers use one order of ids, so that none waits for another in a circle. */
export function toColumns(delta: StateWrites): StateColumns {
  const columns: StateColumns = [[], [], [], []]
  const [ids, keys, values, removed] = columns
  const rows = delta.map(([key, value]) => ({ key: JSON.stringify(key), value }))
  for (const { id, key, value } of rows
    .map((row) => ({ ...row, id: idOf(row.key) }))
    .toSorted((one, other) => (one.id < other.id ? -1 : 1))) {
    // Only what JSON can express is stored. A function, for example, is not.
    const text: string | undefined = value === undefined ? undefined : encodeJson(value)
    if (text === undefined) {
      removed.push(id)
      continue
    }
    ids.push(id)
    keys.push(key)
    values.push(text)
  }
  return columns
}

/** Decodes state that a statement has joined to a list of keys and values. Without rows it is empty. */
export function readState(pairs: string | null): SessionState {
  return pairs === null ? {} : applyDelta({}, decodeDelta(pairs))
}

/** PostgreSQL does not index long text. */
const MAX_INDEXED = 500

function idOf(key: string): string {
  return key.length <= MAX_INDEXED ? key : createHash('sha256').update(key).digest('hex')
}
