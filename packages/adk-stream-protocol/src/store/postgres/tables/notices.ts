import type { NoticeStore } from '../../tables/notices.ts'
import { noticeStore } from '../../tables/notices.ts'
import type { PostgresFeature, PostgresParts } from '../feature-tables.ts'
import { queryOf } from './queries.ts'

export const postgresNotices: PostgresFeature<NoticeStore> = {
  create: `
  -- How far the audit record was read to plan notices.
  CREATE TABLE $schema.notice_positions (
    app_name text COLLATE "C" PRIMARY KEY,
    seq double precision NOT NULL
  );

  -- What people are told about approvals. due_at: when it is sent or tried again, or when it ended.
  CREATE TABLE $schema.notices (
    app_name text COLLATE "C" NOT NULL,
    principal_id text COLLATE "C" NOT NULL,
    notice_id text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    approval_id text COLLATE "C" NOT NULL,
    position double precision NOT NULL,
    asks integer NOT NULL,
    body text NOT NULL,
    state text NOT NULL,
    due_at double precision NOT NULL,
    attempts integer NOT NULL,
    worker text,
    claimed_until double precision NOT NULL,
    answer text,
    reference text,
    PRIMARY KEY (app_name, notice_id)
  );
  CREATE INDEX notices_due ON $schema.notices (app_name, due_at) WHERE state = 'waiting';
  CREATE INDEX notices_of_approval ON $schema.notices (app_name, approval_id, channel, position);
  CREATE INDEX notices_ended ON $schema.notices (due_at) WHERE state <> 'waiting';

  -- Channels whose receiver wants no more notices.
  CREATE TABLE $schema.notice_channels (
    app_name text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    address text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (app_name, channel, address)
  );
  `,
  owned: ['notices'],
  open,
}

const COLUMNS = 'notice_id, channel, approval_id, body, state, attempts, due_at, answer, reference'

/** Stores notices. */
function open({ turns: database, schema, clocks: { clock } }: PostgresParts): NoticeStore {
  const query = queryOf(database)
  const notices = `${schema}.notices`
  const positions = `${schema}.notice_positions`
  const channels = `${schema}.notice_channels`
  return noticeStore({
    position: query(`SELECT seq FROM ${positions} WHERE app_name = $1`),
    start: query(`
      INSERT INTO ${positions} (app_name, seq) SELECT $1, coalesce(max(seq), 0) FROM ${schema}.approval_audit
      ON CONFLICT DO NOTHING`),
    plan: (appName, { from, to, rows, ended }) =>
      database.transaction(async (run, attempt) => {
        const moved = await run(
          `UPDATE ${positions} SET seq = $3 WHERE app_name = $1 AND seq = $2 RETURNING 1`,
          [appName, from, to],
        )
        if (moved.length === 0) {
          if (attempt === 0) return false
          // An earlier attempt may have been committed although its connection was lost. What it has added is added once.
          const [now] = await run<{ readonly seq: number }>(
            `SELECT seq FROM ${positions} WHERE app_name = $1`,
            [appName],
          )
          return now?.seq === to
        }
        await run(
          `INSERT INTO ${notices} (app_name, principal_id, notice_id, channel, approval_id, position, asks, body, state,
             due_at, attempts, claimed_until)
           SELECT $1, principal_id, notice_id, channel, approval_id, position, asks, body, 'waiting', ${clock} + after_ms, 0, 0
           FROM json_to_recordset($2::json) AS added (principal_id text, notice_id text, channel text, approval_id text,
             position double precision, asks integer, body text, after_ms double precision)
           ON CONFLICT DO NOTHING`,
          [appName, rows],
        )
        await run(
          `UPDATE ${notices} SET state = 'ended', due_at = ${clock}
           WHERE app_name = $1 AND approval_id = ANY($2::text[]) AND asks = 1 AND state = 'waiting' AND attempts = 0
             AND due_at > ${clock}`,
          [appName, ended],
        )
        return true
      }),
    listNotified: query(`
      SELECT DISTINCT approval_id, channel FROM ${notices}
      WHERE app_name = $1 AND approval_id = ANY($2::text[])
        AND asks = 1 AND state <> 'ended' AND (attempts > 0 OR due_at <= ${clock})
      ORDER BY approval_id, channel`),
    // Of two workers that find the same notice, the later one waits for the row, and then finds it claimed.
    claim: query(`
      UPDATE ${notices} SET worker = $2, claimed_until = ${clock} + $4::double precision, attempts = attempts + 1
      WHERE app_name = $1 AND state = 'waiting' AND claimed_until <= ${clock} AND notice_id IN (
        SELECT notice_id FROM (
          SELECT notice_id, due_at, row_number() OVER (PARTITION BY principal_id ORDER BY due_at, position) AS turn
          FROM ${notices} AS due
          WHERE app_name = $1 AND state = 'waiting' AND due_at <= ${clock} AND claimed_until <= ${clock}
            AND channel = ANY($3::text[])
            AND NOT EXISTS (
              SELECT 1 FROM ${notices} AS earlier
              WHERE earlier.app_name = $1 AND earlier.approval_id = due.approval_id AND earlier.channel = due.channel
                AND earlier.position < due.position AND earlier.state = 'waiting'
                AND (earlier.attempts > 0 OR earlier.due_at <= ${clock})
            )
        ) AS ready ORDER BY turn, due_at LIMIT $5
      )
      RETURNING ${COLUMNS}`),
    settle: query(`
      UPDATE ${notices} SET state = $4, due_at = ${clock} + $5::double precision, claimed_until = 0, answer = $6,
        reference = coalesce($7, reference)
      WHERE app_name = $1 AND notice_id = $2 AND worker = $3 AND state = 'waiting'`),
    disable: (appName, ...values) =>
      database.transaction(async (run) => {
        const [channel, , reason] = values
        await run(
          `INSERT INTO ${channels} (app_name, channel, address, reason) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
          [appName, ...values],
        )
        await run(
          `UPDATE ${notices} SET state = 'failed', due_at = ${clock}, answer = $3
           WHERE app_name = $1 AND channel = $2 AND state = 'waiting'`,
          [appName, channel, reason],
        )
      }),
    listDisabled: query(`SELECT channel, address FROM ${channels} WHERE app_name = $1`),
    list: query(`
      SELECT ${COLUMNS} FROM ${notices} WHERE app_name = $1 AND approval_id = $2 ORDER BY due_at, position, channel`),
    listUndelivered: query(`
      SELECT app_name, channel, state, count(*)::integer AS count, max(answer) AS answer FROM ${notices}
      WHERE answer IS NOT NULL AND (state = 'waiting' OR state = 'failed' AND due_at > ${clock} - 86400000)
      GROUP BY app_name, channel, state ORDER BY app_name, channel, state`),
    removeOld: query(
      `DELETE FROM ${notices} WHERE state <> 'waiting' AND due_at <= ${clock} - $1::double precision`,
    ),
  })
}
