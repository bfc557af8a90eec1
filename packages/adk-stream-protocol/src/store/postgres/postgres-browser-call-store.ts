import type { AppChatRef } from '../../shared/chat-ref.ts'
import type {
  BrowserCall,
  BrowserCallStore,
  DueBrowserCalls,
  PendingBrowserCall,
} from '../browser-call-store.ts'
import {
  type BrowserCallRow,
  chatColumns,
  decodeBrowserCall,
  decodePendingBrowserCall,
  type PendingBrowserCallRow,
} from '../chat-rows.ts'
import { checkName, isStorable } from '../session-key.ts'
import type { Clocks } from './clocks.ts'
import type { Database } from './database.ts'

/** Stores calls that wait for clients in PostgreSQL. */
export class PostgresBrowserCallStore implements BrowserCallStore {
  readonly #database: Database
  readonly #sql: ReturnType<typeof browserCallSql>

  constructor(database: Database, schema: string, clocks: Clocks) {
    this.#database = database
    this.#sql = browserCallSql(schema, clocks)
  }

  async add({ chat, messageId, toolCallId }: BrowserCall, timeoutMs: number): Promise<void> {
    const names = [checkName('toolCallId', toolCallId), checkName('messageId', messageId)]
    await this.#database.query(this.#sql.add, [...chatColumns(chat), ...names, timeoutMs])
  }

  async drop(chat: AppChatRef, toolCallIds: readonly string[]): Promise<void> {
    const ids = toolCallIds.filter(isStorable)
    await this.#database.query(this.#sql.drop, [...chatColumns(chat), ids])
  }

  async dropChat(chat: AppChatRef): Promise<void> {
    await this.#database.query(this.#sql.dropChat, chatColumns(chat))
  }

  async takeDue({ appName, leaseMs, limit }: DueBrowserCalls): Promise<BrowserCall[]> {
    const values = [checkName('appName', appName), leaseMs, limit]
    const rows = await this.#database.query<BrowserCallRow>(this.#sql.takeDue, values)
    return rows.map((row) => decodeBrowserCall(appName, row))
  }

  async list(filter: {
    readonly chat?: AppChatRef
    readonly limit: number
  }): Promise<PendingBrowserCall[]> {
    const { chat, limit } = filter
    const rows = await this.#database.query<PendingBrowserCallRow>(
      chat ? this.#sql.listChat : this.#sql.list,
      [...(chat ? chatColumns(chat) : []), limit],
    )
    return rows.map(decodePendingBrowserCall)
  }
}

function browserCallSql(schema: string, { clock, leaseClock }: Clocks) {
  const calls = `${schema}.browser_calls`
  const inChat = 'app_name = $1 AND principal_id = $2 AND chat_id = $3'
  return {
    add: `
      INSERT INTO ${calls} (app_name, principal_id, chat_id, tool_call_id, message_id, deadline)
      SELECT $1, $2, $3, $4, $5, ${clock} + $6::double precision ON CONFLICT DO NOTHING`,
    list: `SELECT * FROM ${calls} ORDER BY deadline LIMIT $1`,
    listChat: `SELECT * FROM ${calls} WHERE ${inChat} ORDER BY deadline LIMIT $4`,
    drop: `DELETE FROM ${calls} WHERE ${inChat} AND tool_call_id = ANY ($4::text[])`,
    dropChat: `DELETE FROM ${calls} WHERE ${inChat}`,
    // Instances that sweep at the same time skip each other's rows.
    takeDue: `
      WITH now AS MATERIALIZED (SELECT ${leaseClock} AS at),
      due AS MATERIALIZED (
        SELECT call FROM ${calls}
        WHERE app_name = $1 AND deadline <= (SELECT ${clock})
        AND (taken_at IS NULL OR taken_at + lease_ms <= (SELECT at FROM now))
        ORDER BY coalesce(taken_at, 0), deadline LIMIT $3 FOR UPDATE SKIP LOCKED)
      UPDATE ${calls} SET taken_at = (SELECT at FROM now), lease_ms = $2::double precision
      WHERE call IN (SELECT call FROM due)
      RETURNING principal_id, chat_id, tool_call_id, message_id`,
  }
}
