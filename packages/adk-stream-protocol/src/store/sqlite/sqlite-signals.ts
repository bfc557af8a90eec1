import type { Signal, Signals } from '../../relay/relay.ts'
import { DATABASE_CLOCK } from './approval-sql.ts'
import type { Connection } from './connection.ts'

/** A signal that no process has taken for this long is removed. */
const MAX_AGE_MS = 60_000

/** Signals between the processes on one SQLite file. */
export class SqliteSignals implements Signals {
  readonly #connection: Connection
  readonly #statements: ReturnType<typeof prepareStatements>

  /** `clock` is an SQL expression, in ms. */
  constructor(connection: Connection, clock: string = DATABASE_CLOCK) {
    this.#connection = connection
    this.#statements = prepareStatements(connection, clock)
  }

  async send(target: string, { id, from, kind, body }: Signal): Promise<void> {
    await this.#connection.write(() => {
      this.#statements.removeOld.run(MAX_AGE_MS)
      this.#statements.send.run(id, target, from, kind, JSON.stringify(body))
    }, 'process-death')
  }

  async take(worker: string): Promise<Signal[]> {
    // Usually there is none, and this query takes no lock.
    if ((await this.#statements.find.select(worker)).length === 0) return []
    const rows = await this.#connection.write(
      () => this.#statements.take.rows(worker),
      'process-death',
    )
    return rows.map(({ id, sender, kind, body }) => ({
      id,
      from: sender,
      kind,
      body: JSON.parse(body) as unknown,
    }))
  }
}

interface SignalRow {
  readonly id: string
  readonly sender: string
  readonly kind: string
  readonly body: string
}

function prepareStatements(connection: Connection, clock: string) {
  return {
    removeOld: connection.prepare(`DELETE FROM signals WHERE sent_at < ${clock} - ?`),
    send: connection.prepare(`
      INSERT INTO signals (id, target, sender, kind, body, sent_at) VALUES (?, ?, ?, ?, ?, ${clock})
      ON CONFLICT DO NOTHING`),
    find: connection.prepare<{ found: number }>(
      'SELECT 1 AS found FROM signals WHERE target = ? LIMIT 1',
    ),
    take: connection.prepare<SignalRow>(
      'DELETE FROM signals WHERE target = ? RETURNING id, sender, kind, body',
    ),
  }
}
