import type {
  Hint,
  HintListener,
  Relay,
  RelayTurn,
  Signal,
  TurnChange,
  TurnPosition,
  TurnRows,
  TurnUpdate,
  WriteOptions,
} from '../../relay/relay.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'
import { decodeSignal, type SignalRow } from '../table-stores.ts'
import type { Database } from './database.ts'
import { QUICK } from './database.ts'
import type { ListenClient, ListenTiming } from './hint-connection.ts'
import { CHANNEL, HintConnection, splitHint } from './hint-connection.ts'

export interface PostgresRelayOptions {
  readonly database: Pick<Database, 'query'>
  /** For signals and hints, which must not wait for turns. Default: `database`. */
  readonly signals?: Pick<Database, 'query'>
  /** The quoted name of the schema with the tables. */
  readonly schema: string
  /** Creates a connection for LISTEN. It is not one of the pool. Without it, changes are read at an interval. */
  readonly createClient: (() => ListenClient) | undefined
  readonly timing?: Partial<ListenTiming>
}

/** Relays turns through tables of a PostgreSQL database. */
export class PostgresRelay implements Relay {
  readonly #options: PostgresRelayOptions

  constructor(options: PostgresRelayOptions) {
    this.#options = options
  }

  async write(
    updates: readonly TurnUpdate[],
    { owner, watched }: WriteOptions,
  ): Promise<ReadonlyMap<string, number>> {
    const isChange = updates.some(({ seq, ended }) => seq === 1 || ended)
    const hints = splitHint({ turns: watched, ...(isChange && { changes: true }) })
    const column = <Key extends keyof TurnUpdate>(key: Key): TurnUpdate[Key][] =>
      updates.map((update) => update[key])
    const rows = await this.#query<{ turn_id: string; seq: number }>(WRITE, [
      owner,
      column('turnId'),
      column('seq'),
      column('lines').map((lines) => lines.join('\n')),
      column('ended'),
      column('replayable'),
      column('messageId'),
      updates.map(({ chat }) => chat.appName),
      updates.map(({ chat }) => chat.principalId),
      updates.map(({ chat }) => chat.chatId),
      hints,
      isChange,
    ])
    return new Map(rows.map(({ turn_id: turnId, seq }) => [turnId, seq]))
  }

  async find({ appName, principalId, chatId }: AppChatRef): Promise<RelayTurn | undefined> {
    const [row] = await this.#query<TurnRow>(FIND, [appName, principalId, chatId])
    return row && toTurn(row)
  }

  async read(positions: readonly TurnPosition[]): Promise<TurnRows[]> {
    const known = new Map(positions.map(({ turnId, seq }) => [turnId, seq]))
    const rows = await this.#query<ReadRow>(
      `SELECT position.turn_id, ended_at IS NOT NULL AS ended, replayable, rows.seq, rows.lines
       FROM unnest($1::text[], $2::int[]) AS position (turn_id, seq)
       JOIN $schema.relay_turns ON relay_turns.turn_id = position.turn_id
       LEFT JOIN $schema.relay_rows AS rows ON rows.turn_id = position.turn_id AND rows.seq > position.seq
       ORDER BY position.turn_id, rows.seq`,
      [[...known.keys()], [...known.values()]],
    )
    const read = new Map<string, TurnRows & { lines: string[] }>()
    for (const { turn_id: turnId, ended, replayable, seq, lines } of rows) {
      const from = known.get(turnId) ?? 0
      const found = read.get(turnId) ?? { turnId, seq: from, lines: [], ended, replayable }
      if (lines) found.lines.push(...lines.split('\n'))
      read.set(turnId, { ...found, seq: seq ?? found.seq })
    }
    return [...read.values()]
  }

  async changes(ms: number): Promise<TurnChange[]> {
    const rows = await this.#query<TurnRow & { ended: boolean }>(
      `SELECT ${TURN}, ended_at IS NOT NULL AS ended FROM $schema.relay_turns
       WHERE changed_at > clock_timestamp() - $1 * interval '1 ms' ORDER BY changed_at LIMIT 1000`,
      [ms],
    )
    return rows.map((row) => ({ ...toTurn(row), ended: row.ended }))
  }

  async watch(worker: string, turns: readonly Watched[]): Promise<void> {
    await this.#query(
      `WITH ${QUICK}, written AS (
         INSERT INTO $schema.relay_readers (turn_id, worker, seen_at)
         SELECT turn_id, $1, clock_timestamp() FROM unnest($2::text[]) AS turn_id
         ON CONFLICT (turn_id, worker) DO UPDATE SET seen_at = excluded.seen_at)
       ${NOTIFY('$3')}`,
      [worker, turns.map(({ turnId }) => turnId), splitHint({ watched: ownersOf(turns) })],
    )
  }

  async unwatch(worker: string, turns: readonly Watched[]): Promise<void> {
    await this.#query(
      `WITH ${QUICK}, removed AS (
         DELETE FROM $schema.relay_readers WHERE worker = $1 AND turn_id = ANY ($2::text[]))
       ${NOTIFY('$3')}`,
      [worker, turns.map(({ turnId }) => turnId), splitHint({ watched: ownersOf(turns) })],
    )
  }

  async watched(owner: string, leaseMs: number): Promise<ReadonlySet<string>> {
    const rows = await this.#query<{ turn_id: string }>(
      `SELECT DISTINCT turn_id FROM $schema.relay_turns JOIN $schema.relay_readers USING (turn_id)
       WHERE owner = $1 AND ended_at IS NULL AND seen_at > clock_timestamp() - $2 * interval '1 ms'`,
      [owner, leaseMs],
    )
    return new Set(rows.map(({ turn_id: turnId }) => turnId))
  }

  async send(target: string, { id, from, kind, body }: Signal): Promise<void> {
    await this.#signal(
      `WITH ${QUICK}, sent AS (
         INSERT INTO $schema.relay_signals (id, target, sender, kind, body, sent_at)
         VALUES ($1, $2, $3, $4, $5, clock_timestamp()) ON CONFLICT (id) DO NOTHING)
       ${NOTIFY('$6')}`,
      [id, target, from, kind, JSON.stringify(body), splitHint({ signals: [target] })],
    )
  }

  async take(worker: string): Promise<Signal[]> {
    const rows = await this.#signal<SignalRow>(
      `WITH ${QUICK}, renewed AS (
         INSERT INTO $schema.relay_workers (worker, seen_at) VALUES ($1, clock_timestamp())
         ON CONFLICT (worker) DO UPDATE SET seen_at = excluded.seen_at
         WHERE relay_workers.seen_at < clock_timestamp() - interval '500 ms'),
       taken AS (DELETE FROM $schema.relay_signals WHERE target = $1 RETURNING *)
       SELECT taken.* FROM taken, quick ORDER BY sent_at`,
      [worker],
    )
    return rows.map(decodeSignal)
  }

  async abandoned({
    appName,
    leaseMs,
  }: {
    appName: string
    leaseMs: number
  }): Promise<RelayTurn[]> {
    const rows = await this.#query<TurnRow>(
      `SELECT ${TURN} FROM $schema.relay_turns LEFT JOIN $schema.relay_workers ON worker = owner
       WHERE app_name = $1 AND ended_at IS NULL
         AND greatest(seen_at, started_at) < clock_timestamp() - $2 * interval '1 ms'
       ORDER BY started_at LIMIT 100`,
      [appName, leaseMs],
    )
    return rows.map(toTurn)
  }

  async end(turnId: string, lines: readonly string[]): Promise<void> {
    await this.#query(
      `WITH ${QUICK}, ended AS (
         UPDATE $schema.relay_turns SET ended_at = clock_timestamp(), changed_at = clock_timestamp()
         WHERE turn_id = $1 AND ended_at IS NULL RETURNING turn_id),
       written AS (
         INSERT INTO $schema.relay_rows (turn_id, seq, lines)
         SELECT turn_id, (SELECT coalesce(max(seq), 0) + 1 FROM $schema.relay_rows WHERE turn_id = $1), $2 FROM ended)
       ${NOTIFY('$3')}`,
      [turnId, lines.join('\n'), splitHint({ turns: [turnId], changes: true })],
    )
  }

  async removeEnded(keepMs: number): Promise<void> {
    // Small batches: a long transaction would hold up the removal of old row versions.
    for (let batch = 0; batch < MAX_BATCHES; batch += 1) {
      const removed = await this.#query(
        `WITH ${QUICK}, old AS (
           SELECT turn_id FROM $schema.relay_turns WHERE ended_at < clock_timestamp() - $1 * interval '1 ms'
           LIMIT ${BATCH} FOR UPDATE SKIP LOCKED),
         removed AS (DELETE FROM $schema.relay_turns WHERE turn_id IN (SELECT turn_id FROM old) RETURNING turn_id)
         SELECT turn_id FROM removed, quick`,
        [keepMs],
      )
      if (removed.length < BATCH) break
    }
    await this.#query(
      `WITH ${QUICK}, signals AS (
         DELETE FROM $schema.relay_signals WHERE sent_at < clock_timestamp() - $1 * interval '1 ms'),
       workers AS (
         DELETE FROM $schema.relay_workers WHERE seen_at < clock_timestamp() - interval '1 hour'
           AND NOT EXISTS (SELECT FROM $schema.relay_turns WHERE owner = worker AND ended_at IS NULL))
       SELECT FROM quick`,
      [keepMs],
    )
  }

  async notify(hint: Hint): Promise<void> {
    await this.#signal(`WITH ${QUICK} ${NOTIFY('$1')}`, [splitHint(hint)])
  }

  async listen(listener: HintListener): Promise<() => Promise<void>> {
    const { createClient, timing = {} } = this.#options
    if (!createClient) {
      listener.onState('polling')
      return async () => undefined
    }
    const connection = new HintConnection({
      createClient,
      listener,
      timing,
      probe: async (id) => {
        await this.#signal('SELECT pg_notify($1, $2)', [CHANNEL, JSON.stringify({ probe: id })])
      },
    })
    await connection.start()
    return () => connection.close()
  }

  #query<Row>(sql: string, values: readonly unknown[]): Promise<Row[]> {
    const { database, schema } = this.#options
    return database.query<Row>(sql.replaceAll('$schema', schema), values)
  }

  #signal<Row>(sql: string, values: readonly unknown[]): Promise<Row[]> {
    const { database, signals = database, schema } = this.#options
    return signals.query<Row>(sql.replaceAll('$schema', schema), values)
  }
}

type Watched = Pick<RelayTurn, 'turnId' | 'owner'>

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

const TURN = 'turn_id, app_name, principal_id, chat_id, message_id, owner, replayable'

/**
 * The end of a turn may be written after the next turn of the chat has started, and a server that stood still may write its turn after
 * another server has taken the chat over. So while a server holds the chat, only a turn that this server started since then counts.
 * A server that ends the turn of a crashed server holds the chat in the background: clients read that turn until it has ended.
 */
const FIND = `
SELECT ${TURN} FROM $schema.relay_turns AS found
LEFT JOIN $schema.chat_locks AS lock USING (app_name, principal_id, chat_id)
WHERE app_name = $1 AND principal_id = $2 AND chat_id = $3 AND ended_at IS NULL AND CASE
  WHEN lock.background IS FALSE THEN owner = lock.worker AND extract(epoch FROM started_at) * 1000 >= lock.locked_at
  ELSE NOT EXISTS (
    SELECT FROM $schema.relay_turns AS newer
    WHERE newer.app_name = $1 AND newer.principal_id = $2 AND newer.chat_id = $3
      AND newer.changed_at >= found.started_at AND newer.started_at > found.started_at) END
ORDER BY started_at DESC LIMIT 1`

const BATCH = 500
const MAX_BATCHES = 20

/** Ends a statement with its hints. They are sent when it commits. */
const NOTIFY = (hints: string): string =>
  `SELECT pg_notify('${CHANNEL}', hint) FROM quick, unnest(${hints}::text[]) AS hint`

/**
 * Writes updates, oldest first, of any number of turns. If updates before the given ones are missing, stores nothing of the turn. The
 * start and the end of a turn wait for the disk ($12): no other write would show that they were lost.
 */
const WRITE = `
WITH quick AS MATERIALIZED (
  SELECT CASE WHEN NOT $12::bool THEN set_config('synchronous_commit', 'off', true) END),
input AS MATERIALIZED (
  SELECT * FROM unnest($2::text[], $3::int[], $4::text[], $5::bool[], $6::bool[], $7::text[], $8::text[], $9::text[], $10::text[])
    AS input (turn_id, seq, lines, ended, replayable, message_id, app_name, principal_id, chat_id)),
latest AS MATERIALIZED (
  SELECT DISTINCT ON (turn_id) *, min(seq) OVER (PARTITION BY turn_id) AS first_seq FROM input ORDER BY turn_id, seq DESC),
started AS (
  INSERT INTO $schema.relay_turns (turn_id, app_name, principal_id, chat_id, message_id, owner, replayable, started_at, changed_at, ended_at)
  SELECT turn_id, app_name, principal_id, chat_id, message_id, $1, replayable, clock_timestamp(), clock_timestamp(),
    CASE WHEN ended THEN clock_timestamp() END
  FROM latest WHERE first_seq = 1
  ON CONFLICT (turn_id) DO NOTHING RETURNING turn_id),
stored AS MATERIALIZED (
  SELECT turn_id, 0 AS seq FROM started
  UNION SELECT turn_id, coalesce((SELECT max(seq) FROM $schema.relay_rows AS rows WHERE rows.turn_id = relay_turns.turn_id), 0)
  FROM $schema.relay_turns JOIN latest USING (turn_id) WHERE owner = $1 AND ended_at IS NULL),
complete AS MATERIALIZED (
  SELECT latest.* FROM latest JOIN stored USING (turn_id) WHERE first_seq <= stored.seq + 1),
changed AS (
  UPDATE $schema.relay_turns SET replayable = complete.replayable, changed_at = clock_timestamp(),
    ended_at = CASE WHEN ended THEN clock_timestamp() END
  FROM complete WHERE relay_turns.turn_id = complete.turn_id AND owner = $1 AND ended_at IS NULL
    AND (ended OR complete.replayable <> relay_turns.replayable)),
written AS (
  INSERT INTO $schema.relay_rows (turn_id, seq, lines)
  SELECT turn_id, input.seq, input.lines FROM input JOIN complete USING (turn_id)
  ON CONFLICT (turn_id, seq) DO NOTHING),
notified AS MATERIALIZED (SELECT count(pg_notify('${CHANNEL}', hint)) FROM unnest($11::text[]) AS hint)
SELECT stored.turn_id, greatest(stored.seq, complete.seq) AS seq
FROM stored LEFT JOIN complete USING (turn_id), quick, notified`

function ownersOf(turns: readonly Watched[]): string[] {
  return [...new Set(turns.map(({ owner }) => owner))]
}

function toTurn(row: TurnRow): RelayTurn {
  const { app_name: appName, principal_id: principalId, chat_id: chatId } = row
  const { turn_id: turnId, message_id: messageId, owner, replayable } = row
  return { turnId, chat: { appName, principalId, chatId }, messageId, owner, replayable }
}
