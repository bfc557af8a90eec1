import type { AppChatRef } from '../../shared/chat-ref.ts'
import { chatColumns } from '../chat-rows.ts'
import type { LiveSessionStore, SaveOptions } from '../live-session-store.ts'
import type { Clocks } from './clocks.ts'
import type { Database } from './database.ts'

/** Stores the state of live sessions in PostgreSQL. */
export class PostgresLiveSessionStore implements LiveSessionStore {
  readonly #database: Database
  readonly #sql: ReturnType<typeof liveSessionSql>

  constructor(database: Database, schema: string, clocks: Clocks) {
    this.#database = database
    this.#sql = liveSessionSql(schema, clocks)
  }

  async save(
    chat: AppChatRef,
    state: Uint8Array,
    { lock, maxAgeMs }: SaveOptions,
  ): Promise<boolean> {
    const values = [
      ...chatColumns(chat),
      Buffer.from(state),
      ...chatColumns(lock.chat),
      lock.token,
      maxAgeMs,
    ]
    return (await this.#database.query(this.#sql.save, values)).length > 0
  }

  async find(chat: AppChatRef): Promise<Uint8Array | undefined> {
    const [row] = await this.#database.query<{ state: Buffer }>(this.#sql.find, chatColumns(chat))
    return row?.state
  }

  async drop(chat: AppChatRef): Promise<void> {
    await this.#database.query(this.#sql.drop, chatColumns(chat))
  }
}

function liveSessionSql(schema: string, { clock }: Clocks) {
  const sessions = `${schema}.live_sessions`
  const inChat = 'app_name = $1 AND principal_id = $2 AND chat_id = $3'
  return {
    save: `
      WITH old AS (
        DELETE FROM ${sessions} WHERE saved_at < (SELECT ${clock}) - $9::double precision AND NOT (${inChat}))
      INSERT INTO ${sessions} (app_name, principal_id, chat_id, state, saved_at)
      SELECT $1, $2, $3, $4::bytea, ${clock} FROM ${schema}.chat_locks
      -- A process that takes over the live session waits, and then finds this state.
      WHERE app_name = $5 AND principal_id = $6 AND chat_id = $7 AND token = $8 FOR SHARE
      ON CONFLICT (app_name, principal_id, chat_id) DO UPDATE SET state = excluded.state, saved_at = excluded.saved_at
      RETURNING 1 AS saved`,
    find: `SELECT state FROM ${sessions} WHERE ${inChat}`,
    drop: `DELETE FROM ${sessions} WHERE ${inChat}`,
  }
}
