import type { NoticeRow, NoticeStore } from '../../tables/notices.ts'
import { noticeStore } from '../../tables/notices.ts'
import type { SqliteClocks, SqliteFeature } from '../feature-tables.ts'
import type { Connection } from '../connection.ts'
import { queriesOf } from './queries.ts'

export const sqliteNotices: SqliteFeature<NoticeStore> = {
  create: `
  -- How far the audit record was read to plan notices.
  CREATE TABLE notice_positions (
    app_name TEXT PRIMARY KEY,
    seq INTEGER NOT NULL
  ) STRICT;

  -- What people are told about approvals. due_at: when it is sent or tried again, or when it ended.
  CREATE TABLE notices (
    app_name TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    notice_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    approval_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    asks INTEGER NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    due_at REAL NOT NULL,
    attempts INTEGER NOT NULL,
    worker TEXT,
    claimed_until REAL NOT NULL,
    answer TEXT,
    reference TEXT,
    PRIMARY KEY (app_name, notice_id)
  ) STRICT;
  CREATE INDEX notices_due ON notices (app_name, due_at) WHERE state = 'waiting';
  CREATE INDEX notices_of_approval ON notices (app_name, approval_id, channel, position);
  CREATE INDEX notices_ended ON notices (due_at) WHERE state <> 'waiting';

  -- Channels whose receiver wants no more notices.
  CREATE TABLE notice_channels (
    app_name TEXT NOT NULL,
    channel TEXT NOT NULL,
    address TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (app_name, channel, address)
  ) STRICT;
  `,
  owned: ['notices'],
  open,
}

const COLUMNS = 'notice_id, channel, approval_id, body, state, attempts, due_at, answer, reference'

/** Stores notices. */
function open(connection: Connection, { clock }: SqliteClocks): NoticeStore {
  const { read, write, writeDurably } = queriesOf(connection)
  const move = connection.prepare(
    'UPDATE notice_positions SET seq = ?3 WHERE app_name = ?1 AND seq = ?2',
  )
  const add = connection.prepare(`
    INSERT INTO notices (app_name, principal_id, notice_id, channel, approval_id, position, asks, body, state, due_at,
      attempts, claimed_until)
    SELECT ?1, value ->> 'principal_id', value ->> 'notice_id', value ->> 'channel', value ->> 'approval_id',
      value ->> 'position', value ->> 'asks', value ->> 'body', 'waiting', ${clock} + (value ->> 'after_ms'), 0, 0
    FROM json_each(?2) WHERE true ON CONFLICT DO NOTHING`)
  const end = connection.prepare(`
    UPDATE notices SET state = 'ended', due_at = ${clock}
    WHERE app_name = ?1 AND approval_id IN (SELECT value FROM json_each(?2))
      AND asks = 1 AND state = 'waiting' AND attempts = 0 AND due_at > ${clock}`)
  const disable = connection.prepare(`
    INSERT INTO notice_channels (app_name, channel, address, reason) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING`)
  const fail = connection.prepare(`
    UPDATE notices SET state = 'failed', due_at = ${clock}, answer = ?3
    WHERE app_name = ?1 AND channel = ?2 AND state = 'waiting'`)
  const findDue = read(`
    SELECT 1 FROM notices WHERE app_name = ?1 AND state = 'waiting' AND due_at <= ${clock} LIMIT 1`)
  const claim = write<NoticeRow>(`
      UPDATE notices SET worker = ?2, claimed_until = ${clock} + ?4, attempts = attempts + 1
      WHERE app_name = ?1 AND notice_id IN (
        SELECT notice_id FROM (
          SELECT notice_id, due_at, row_number() OVER (PARTITION BY principal_id ORDER BY due_at, position) AS turn
          FROM notices AS due
          WHERE app_name = ?1 AND state = 'waiting' AND due_at <= ${clock} AND claimed_until <= ${clock}
            AND channel IN (SELECT value FROM json_each(?3))
            AND NOT EXISTS (
              SELECT 1 FROM notices AS earlier
              WHERE earlier.app_name = ?1 AND earlier.approval_id = due.approval_id AND earlier.channel = due.channel
                AND earlier.position < due.position AND earlier.state = 'waiting'
                AND (earlier.attempts > 0 OR earlier.due_at <= ${clock})
            )
        ) ORDER BY turn, due_at LIMIT ?5
      )
      RETURNING ${COLUMNS}`)
  return noticeStore({
    position: read('SELECT seq FROM notice_positions WHERE app_name = ?1'),
    start: writeDurably(`
      INSERT INTO notice_positions (app_name, seq) SELECT ?1, coalesce(max(seq), 0) FROM approval_audit
      WHERE true ON CONFLICT DO NOTHING`),
    plan: (appName, { from, to, rows, ended }) =>
      connection.write(() => {
        if (move.run(appName, from, to) === 0) return false
        add.run(appName, rows)
        end.run(appName, JSON.stringify(ended))
        return true
      }),
    listNotified: read(`
      SELECT DISTINCT approval_id, channel FROM notices
      WHERE app_name = ?1 AND approval_id IN (SELECT value FROM json_each(?2))
        AND asks = 1 AND state <> 'ended' AND (attempts > 0 OR due_at <= ${clock})
      ORDER BY approval_id, channel`),
    claim: async (appName, ...values) => {
      // Usually nothing is due, and this query takes no lock.
      if ((await findDue(appName)).length === 0) return []
      return claim(appName, ...values)
    },
    settle: writeDurably(`
      UPDATE notices SET state = ?4, due_at = ${clock} + ?5, claimed_until = 0, answer = ?6,
        reference = coalesce(?7, reference)
      WHERE app_name = ?1 AND notice_id = ?2 AND worker = ?3 AND state = 'waiting'`),
    disable: async (appName, ...values) => {
      const [channel = '', , reason = ''] = values
      await connection.write(() => {
        disable.run(appName, ...values)
        fail.run(appName, channel, reason)
      })
    },
    listDisabled: read('SELECT channel, address FROM notice_channels WHERE app_name = ?1'),
    list: read(`
      SELECT ${COLUMNS} FROM notices WHERE app_name = ?1 AND approval_id = ?2 ORDER BY due_at, position, channel`),
    listUndelivered: read(`
      SELECT app_name, channel, state, count(*) AS count, max(answer) AS answer FROM notices
      WHERE answer IS NOT NULL AND (state = 'waiting' OR state = 'failed' AND due_at > ${clock} - 86400000)
      GROUP BY app_name, channel, state ORDER BY app_name, channel, state`),
    removeOld: write(`
      DELETE FROM notices WHERE state <> 'waiting' AND due_at <= ${clock} - ?1`),
  })
}
