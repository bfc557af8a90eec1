import type { Relay, RelayTurn, TurnRows, TurnUpdate } from '../../relay/relay.ts'
import { decodeSignal, type SignalRow } from '../tables/signals.ts'
import type { Clocks, Database, ListenClient } from './database.ts'
import { QUICK } from './database.ts'
import type { PostgresFeature } from './feature-tables.ts'
import type { ListenTiming } from './hint-connection.ts'
import { CHANNEL, HintConnection, splitHint } from './hint-connection.ts'

/** What servers share about their running turns, and how it is opened. */
export const relayTables: PostgresFeature<Relay> = {
  create: `
  -- The rows of running turns. They live as long as their turns.
  CREATE TABLE $schema.relay_turns (
    turn_id text PRIMARY KEY,
    app_name text NOT NULL,
    principal_id text NOT NULL,
    chat_id text NOT NULL,
    message_id text NOT NULL,
    owner text NOT NULL,
    replayable boolean NOT NULL,
    started_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    ended_at timestamptz
  );
  CREATE INDEX relay_turns_of_chat ON $schema.relay_turns (app_name, principal_id, chat_id) WHERE ended_at IS NULL;
  CREATE INDEX relay_turns_changed ON $schema.relay_turns (changed_at);
  CREATE INDEX relay_turns_ended ON $schema.relay_turns (ended_at) WHERE ended_at IS NOT NULL;
  CREATE TABLE $schema.relay_rows (
    turn_id text NOT NULL REFERENCES $schema.relay_turns ON DELETE CASCADE,
    seq integer NOT NULL,
    lines text NOT NULL,
    PRIMARY KEY (turn_id, seq)
  );
  CREATE TABLE $schema.relay_readers (
    turn_id text NOT NULL REFERENCES $schema.relay_turns ON DELETE CASCADE,
    worker text NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (turn_id, worker)
  );
  CREATE TABLE $schema.relay_workers (worker text PRIMARY KEY, seen_at timestamptz NOT NULL);
  CREATE TABLE $schema.relay_signals (
    id text PRIMARY KEY,
    target text NOT NULL,
    sender text NOT NULL,
    kind text NOT NULL,
    body text NOT NULL,
    sent_at timestamptz NOT NULL
  );
  CREATE INDEX relay_signals_of_target ON $schema.relay_signals (target);
  `,
  owned: ['relay_turns'],
  ofChats: ['relay_turns'],
  leased: 'relay_turns WHERE ended_at IS NULL',
  open: ({ turns, decisions, schema, clocks, createClient }) =>
    postgresRelay({ database: turns, signals: decisions, schema, clocks, createClient }),
}

export interface PostgresRelayOptions {
  readonly database: Pick<Database, 'query'>
  /** For signals and hints, which must not wait for turns. Default: `database`. */
  readonly signals?: Pick<Database, 'query'>
  /** The quoted name of the schema with the tables. */
  readonly schema: string
  readonly clocks: Pick<Clocks, 'leaseClock'>
  /** Creates a connection for LISTEN. It is not one of the pool. Without it, changes are read at an interval. */
  readonly createClient: (() => ListenClient) | undefined
  readonly timing?: Partial<ListenTiming>
}

/** Relays turns through tables of a PostgreSQL database. */
export function postgresRelay(options: PostgresRelayOptions): Relay {
  const { database, signals = database, createClient, timing = {} } = options
  const leaseNow = `to_timestamp((SELECT ${options.clocks.leaseClock}) / 1000)`
  const sql = { ...turnSql(options.schema, leaseNow), ...signalSql(options.schema, leaseNow) }
  const probe = async (id: string): Promise<void> => {
    await signals.query('SELECT pg_notify($1, $2)', [CHANNEL, JSON.stringify({ probe: id })])
  }
  return {
    async write(updates, { owner, watched }) {
      const isChange = updates.some(({ seq, ended }) => seq === 1 || ended)
      const hints = splitHint({ turns: watched, ...(isChange && { changes: true }) })
      const rows = await database.query<{ turn_id: string; seq: number }>(sql.write, [
        owner,
        ...toColumns(updates),
        hints,
        isChange,
      ])
      return new Map(rows.map(({ turn_id: turnId, seq }) => [turnId, seq]))
    },
    async find({ appName, principalId, chatId }) {
      const [row] = await database.query<TurnRow>(sql.find, [appName, principalId, chatId])
      return row && toTurn(row)
    },
    async read(positions) {
      const known = new Map(positions.map(({ turnId, seq }) => [turnId, seq]))
      const rows = await database.query<ReadRow>(sql.read, [[...known.keys()], [...known.values()]])
      return joinRows(known, rows)
    },
    async changes(ms) {
      const rows = await database.query<TurnRow & { ended: boolean }>(sql.changes, [ms])
      return rows.map((row) => ({ ...toTurn(row), ended: row.ended }))
    },
    async watch(worker, turns) {
      await database.query(sql.watch, [worker, ...watchValues(turns)])
    },
    async unwatch(worker, turns) {
      await database.query(sql.unwatch, [worker, ...watchValues(turns)])
    },
    async watched(owner, leaseMs) {
      const rows = await database.query<{ turn_id: string }>(sql.watched, [owner, leaseMs])
      return new Set(rows.map(({ turn_id: turnId }) => turnId))
    },
    async send(target, { id, from, kind, body }) {
      const hints = splitHint({ signals: [target] })
      await signals.query(sql.send, [id, target, from, kind, JSON.stringify(body), hints])
    },
    async take(worker) {
      return (await signals.query<SignalRow>(sql.take, [worker])).map(decodeSignal)
    },
    async abandoned({ appName, leaseMs }) {
      return (await database.query<TurnRow>(sql.abandoned, [appName, leaseMs])).map(toTurn)
    },
    async end(turnId, lines) {
      const hints = splitHint({ turns: [turnId], changes: true })
      await database.query(sql.end, [turnId, lines.join('\n'), hints])
    },
    async removeEnded(keepMs) {
      // Small batches: a long transaction would hold up the removal of old row versions.
      for (let batch = 0; batch < MAX_BATCHES; batch += 1) {
        if ((await database.query(sql.removeTurns, [keepMs])).length < BATCH) break
      }
      await database.query(sql.removeOld, [keepMs])
    },
    async removeChat({ appName, principalId, chatId }) {
      await database.query(sql.removeChat, [appName, principalId, chatId])
    },
    async notify(hint) {
      await signals.query(sql.notify, [splitHint(hint)])
    },
    async listen(listener) {
      if (!createClient) {
        listener.onState('polling')
        return async () => undefined
      }
      const connection = new HintConnection({ createClient, listener, timing, probe })
      await connection.start()
      return () => connection.close()
    },
  }
}

interface TurnRow {
  readonly turn_id: string
  readonly app_name: string
  readonly principal_id: string
  readonly chat_id: string
  readonly message_id: string
  readonly owner: string
  readonly replayable: boolean
}

interface ReadRow {
  readonly turn_id: string
  readonly ended: boolean
  readonly replayable: boolean
  /** The number and lines of a row, or null if no row is new. */
  readonly seq: number | null
  readonly lines: string | null
}

function toTurn(row: TurnRow): RelayTurn {
  const { app_name: appName, principal_id: principalId, chat_id: chatId } = row
  const { turn_id: turnId, message_id: messageId, owner, replayable } = row
  return { turnId, chat: { appName, principalId, chatId }, messageId, owner, replayable }
}

/** Joins the rows that follow the known positions of turns. */
function joinRows(known: ReadonlyMap<string, number>, rows: readonly ReadRow[]): TurnRows[] {
  const read = new Map<string, TurnRows & { lines: string[] }>()
  for (const { turn_id: turnId, ended, replayable, seq, lines } of rows) {
    const from = known.get(turnId) ?? 0
    const found = read.get(turnId) ?? { turnId, seq: from, lines: [], ended, replayable }
    if (lines) found.lines.push(...lines.split('\n'))
    read.set(turnId, { ...found, seq: seq ?? found.seq })
  }
  return [...read.values()]
}

/** Returns a list for each column of the updates, in the order of the statement. */
function toColumns(updates: readonly TurnUpdate[]): unknown[][] {
  return [
    updates.map(({ turnId }) => turnId),
    updates.map(({ seq }) => seq),
    updates.map(({ lines }) => lines.join('\n')),
    updates.map(({ ended }) => ended),
    updates.map(({ replayable }) => replayable),
    updates.map(({ messageId }) => messageId),
    updates.map(({ chat }) => chat.appName),
    updates.map(({ chat }) => chat.principalId),
    updates.map(({ chat }) => chat.chatId),
  ]
}

/** Returns the turns whose readers change, and the hints to the servers that run them. */
function watchValues(turns: readonly Pick<RelayTurn, 'turnId' | 'owner'>[]): string[][] {
  const owners = new Set(turns.map(({ owner }) => owner))
  return [turns.map(({ turnId }) => turnId), splitHint({ watched: [...owners] })]
}

const BATCH = 500
const MAX_BATCHES = 20

/** Returns the statements for turns. `schema` is a quoted name, `leaseNow` the time of the lease clock. */
function turnSql(schema: string, leaseNow: string) {
  const turn = 'turn_id, app_name, principal_id, chat_id, message_id, owner, replayable'
  return {
    /**
     * Writes updates, oldest first, of any number of turns. If updates before the given ones are missing, stores nothing of the turn. The
     * start and the end of a turn wait for the disk ($12): no other write would show that they were lost.
     */
    write: `
      WITH quick AS MATERIALIZED (
        SELECT CASE WHEN NOT $12::bool THEN set_config('synchronous_commit', 'off', true) END),
      input AS MATERIALIZED (
        SELECT * FROM unnest($2::text[], $3::int[], $4::text[], $5::bool[], $6::bool[], $7::text[], $8::text[], $9::text[], $10::text[])
          AS input (turn_id, seq, lines, ended, replayable, message_id, app_name, principal_id, chat_id)),
      latest AS MATERIALIZED (
        SELECT DISTINCT ON (turn_id) *, min(seq) OVER (PARTITION BY turn_id) AS first_seq FROM input ORDER BY turn_id, seq DESC),
      started AS (
        INSERT INTO ${schema}.relay_turns (turn_id, app_name, principal_id, chat_id, message_id, owner, replayable, started_at, changed_at, ended_at)
        SELECT turn_id, app_name, principal_id, chat_id, message_id, $1, replayable, clock_timestamp(), clock_timestamp(),
          CASE WHEN ended THEN clock_timestamp() END
        FROM latest WHERE first_seq = 1
        ON CONFLICT (turn_id) DO NOTHING RETURNING turn_id),
      seen AS (
        INSERT INTO ${schema}.relay_workers (worker, seen_at) SELECT $1, ${leaseNow} WHERE EXISTS (SELECT FROM started)
        ON CONFLICT (worker) DO UPDATE SET seen_at = greatest(relay_workers.seen_at, excluded.seen_at)),
      stored AS MATERIALIZED (
        SELECT turn_id, 0 AS seq FROM started
        UNION SELECT turn_id, coalesce((SELECT max(seq) FROM ${schema}.relay_rows AS rows WHERE rows.turn_id = relay_turns.turn_id), 0)
        FROM ${schema}.relay_turns JOIN latest USING (turn_id) WHERE owner = $1 AND ended_at IS NULL),
      complete AS MATERIALIZED (
        SELECT latest.* FROM latest JOIN stored USING (turn_id) WHERE first_seq <= stored.seq + 1),
      changed AS (
        UPDATE ${schema}.relay_turns SET replayable = complete.replayable, changed_at = clock_timestamp(),
          ended_at = CASE WHEN ended THEN clock_timestamp() END
        FROM complete WHERE relay_turns.turn_id = complete.turn_id AND owner = $1 AND ended_at IS NULL
          AND (ended OR complete.replayable <> relay_turns.replayable)),
      written AS (
        INSERT INTO ${schema}.relay_rows (turn_id, seq, lines)
        SELECT turn_id, input.seq, input.lines FROM input JOIN complete USING (turn_id)
        ON CONFLICT (turn_id, seq) DO NOTHING),
      notified AS MATERIALIZED (SELECT count(pg_notify('${CHANNEL}', hint)) FROM unnest($11::text[]) AS hint)
      SELECT stored.turn_id, greatest(stored.seq, complete.seq) AS seq
      FROM stored LEFT JOIN complete USING (turn_id), quick, notified`,
    /**
     * Turns may be written late: the end of a turn after the next turn of the chat has started, and everything by a server that stood
     * still. So a turn that the holder of the chat has started since it holds the chat comes first, and if a request holds the chat,
     * only such a turn counts. A server that ends the turn of a crashed server holds the chat in the background, and starts no turn:
     * clients read the turn of the crashed server until it has ended.
     */
    find: `
      SELECT ${turn} FROM (
        SELECT *, owner = lock.worker AND started_at >= lock.since AS is_of_holder FROM ${schema}.relay_turns
        LEFT JOIN ${schema}.chat_locks AS lock USING (app_name, principal_id, chat_id)
        WHERE app_name = $1 AND principal_id = $2 AND chat_id = $3 AND ended_at IS NULL) AS found
      WHERE is_of_holder OR background IS NOT FALSE AND NOT EXISTS (
        SELECT FROM ${schema}.relay_turns AS newer
        WHERE newer.app_name = $1 AND newer.principal_id = $2 AND newer.chat_id = $3
          AND newer.changed_at >= found.started_at AND newer.started_at > found.started_at)
      ORDER BY coalesce(is_of_holder, FALSE) DESC, started_at DESC LIMIT 1`,
    read: `
      SELECT position.turn_id, ended_at IS NOT NULL AS ended, replayable, rows.seq, rows.lines
      FROM unnest($1::text[], $2::int[]) AS position (turn_id, seq)
      JOIN ${schema}.relay_turns ON relay_turns.turn_id = position.turn_id
      LEFT JOIN ${schema}.relay_rows AS rows ON rows.turn_id = position.turn_id AND rows.seq > position.seq
      ORDER BY position.turn_id, rows.seq`,
    changes: `
      SELECT ${turn}, ended_at IS NOT NULL AS ended FROM ${schema}.relay_turns
      WHERE changed_at > clock_timestamp() - $1 * interval '1 ms' ORDER BY changed_at LIMIT 1000`,
    abandoned: `
      SELECT ${turn} FROM ${schema}.relay_turns LEFT JOIN ${schema}.relay_workers ON worker = owner
      WHERE app_name = $1 AND ended_at IS NULL
        AND coalesce(seen_at, 'epoch') < ${leaseNow} - $2 * interval '1 ms'
      ORDER BY started_at LIMIT 100`,
    end: `
      WITH ${QUICK}, ended AS (
        UPDATE ${schema}.relay_turns SET ended_at = clock_timestamp(), changed_at = clock_timestamp()
        WHERE turn_id = $1 AND ended_at IS NULL RETURNING turn_id),
      written AS (
        INSERT INTO ${schema}.relay_rows (turn_id, seq, lines)
        SELECT turn_id, (SELECT coalesce(max(seq), 0) + 1 FROM ${schema}.relay_rows WHERE turn_id = $1), $2 FROM ended)
      ${notify('$3')}`,
    removeChat: `DELETE FROM ${schema}.relay_turns WHERE app_name = $1 AND principal_id = $2 AND chat_id = $3`,
    removeTurns: `
      WITH ${QUICK}, old AS (
        SELECT turn_id FROM ${schema}.relay_turns WHERE ended_at < clock_timestamp() - $1 * interval '1 ms'
        LIMIT ${BATCH} FOR UPDATE SKIP LOCKED),
      removed AS (DELETE FROM ${schema}.relay_turns WHERE turn_id IN (SELECT turn_id FROM old) RETURNING turn_id)
      SELECT turn_id FROM removed, quick`,
  }
}

/** Returns the statements for the servers that read turns, and for signals between servers. */
function signalSql(schema: string, leaseNow: string) {
  return {
    watch: `
      WITH ${QUICK}, written AS (
        INSERT INTO ${schema}.relay_readers (turn_id, worker, seen_at)
        SELECT turn_id, $1, ${leaseNow} FROM unnest($2::text[]) AS turn_id
        ON CONFLICT (turn_id, worker) DO UPDATE SET seen_at = excluded.seen_at)
      ${notify('$3')}`,
    unwatch: `
      WITH ${QUICK}, removed AS (
        DELETE FROM ${schema}.relay_readers WHERE worker = $1 AND turn_id = ANY ($2::text[]))
      ${notify('$3')}`,
    watched: `
      SELECT DISTINCT turn_id FROM ${schema}.relay_turns JOIN ${schema}.relay_readers USING (turn_id)
      WHERE owner = $1 AND ended_at IS NULL AND seen_at > ${leaseNow} - $2 * interval '1 ms'`,
    send: `
      WITH ${QUICK}, sent AS (
        INSERT INTO ${schema}.relay_signals (id, target, sender, kind, body, sent_at)
        VALUES ($1, $2, $3, $4, $5, clock_timestamp()) ON CONFLICT (id) DO NOTHING)
      ${notify('$6')}`,
    take: `
      WITH ${QUICK}, renewed AS (
        INSERT INTO ${schema}.relay_workers (worker, seen_at) VALUES ($1, ${leaseNow})
        ON CONFLICT (worker) DO UPDATE SET seen_at = excluded.seen_at
        WHERE relay_workers.seen_at < excluded.seen_at - interval '500 ms'),
      taken AS (DELETE FROM ${schema}.relay_signals WHERE target = $1 RETURNING *)
      SELECT taken.* FROM taken, quick ORDER BY sent_at`,
    removeOld: `
      WITH ${QUICK}, signals AS (
        DELETE FROM ${schema}.relay_signals WHERE sent_at < clock_timestamp() - $1 * interval '1 ms'),
      workers AS (
        DELETE FROM ${schema}.relay_workers WHERE seen_at < ${leaseNow} - interval '1 hour'
          AND NOT EXISTS (SELECT FROM ${schema}.relay_turns WHERE owner = worker AND ended_at IS NULL))
      SELECT FROM quick`,
    notify: `WITH ${QUICK} ${notify('$1')}`,
  }
}

/** Ends a statement with its hints. They are sent when it commits. */
function notify(hints: string): string {
  return `SELECT pg_notify('${CHANNEL}', hint) FROM quick, unnest(${hints}::text[]) AS hint`
}
