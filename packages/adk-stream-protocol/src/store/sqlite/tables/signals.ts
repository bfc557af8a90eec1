import { queriesOf } from '../queries.ts'
import type { Signals } from '../../../relay/relay.ts'
import type { SignalRow } from '../../tables/signals.ts'
import { decodeSignal } from '../../tables/signals.ts'
import type { Connection } from '../connection.ts'
import type { SqliteClocks, SqliteFeature } from '../feature-tables.ts'

export const sqliteSignals: SqliteFeature<Signals> = {
  create: `
  -- Messages from one process to another.
  CREATE TABLE signals (
    signal INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    target TEXT NOT NULL,
    sender TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    sent_at REAL NOT NULL
  ) STRICT;
  CREATE INDEX signals_of_target ON signals (target);
  `,
  owned: [],
  open,
}

/** A signal that no process has taken for this long is removed. */
const MAX_SIGNAL_AGE_MS = 60_000

/** Signals between the processes on one SQLite file. */
function open(connection: Connection, { clock }: SqliteClocks): Signals {
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
