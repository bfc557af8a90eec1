import type { AppChatRef } from '../../shared/chat-ref.ts'
import { chatColumns } from '../chat-rows.ts'
import type { LiveSessionStore, SaveOptions } from '../live-session-store.ts'
import { DATABASE_CLOCK } from './approval-statements.ts'
import type { Connection } from './connection.ts'

/** Stores the state of live sessions in SQLite. */
export class SqliteLiveSessionStore implements LiveSessionStore {
  readonly #connection: Connection
  readonly #statements: ReturnType<typeof prepareStatements>

  /** `clock` is an SQL expression, in ms. */
  constructor(connection: Connection, clock: string = DATABASE_CLOCK) {
    this.#connection = connection
    this.#statements = prepareStatements(connection, clock)
  }

  async save(
    chat: AppChatRef,
    state: Uint8Array,
    { lock, maxAgeMs }: SaveOptions,
  ): Promise<boolean> {
    const row = [...chatColumns(chat), Buffer.from(state)]
    const key = [...chatColumns(lock.chat), lock.token]
    return this.#connection.write(() => {
      this.#statements.removeOld.run(maxAgeMs)
      return this.#statements.save.rows(...row, ...key).length > 0
    }, 'process-death')
  }

  async find(chat: AppChatRef): Promise<Uint8Array | undefined> {
    const [row] = await this.#statements.find.select(...chatColumns(chat))
    return row && Buffer.from(row.state)
  }

  async drop(chat: AppChatRef): Promise<void> {
    const key = chatColumns(chat)
    if ((await this.#statements.find.select(...key)).length === 0) return
    await this.#connection.write(() => this.#statements.drop.run(...key), 'process-death')
  }
}

function prepareStatements(connection: Connection, clock: string) {
  const chat = 'app_name = ? AND principal_id = ? AND chat_id = ?'
  return {
    removeOld: connection.prepare(`DELETE FROM live_sessions WHERE saved_at < ${clock} - ?`),
    save: connection.prepare<{ saved: number }>(`
      INSERT INTO live_sessions (app_name, principal_id, chat_id, state, saved_at)
      SELECT ?1, ?2, ?3, ?4, ${clock} FROM chat_locks
      WHERE app_name = ?5 AND principal_id = ?6 AND chat_id = ?7 AND token = ?8
      ON CONFLICT DO UPDATE SET state = excluded.state, saved_at = excluded.saved_at
      RETURNING 1 AS saved`),
    find: connection.prepare<{ state: ArrayBuffer }>(
      `SELECT state FROM live_sessions WHERE ${chat}`,
    ),
    drop: connection.prepare(`DELETE FROM live_sessions WHERE ${chat}`),
  }
}
