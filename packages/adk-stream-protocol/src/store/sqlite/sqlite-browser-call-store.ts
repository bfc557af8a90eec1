import { checkName } from '../session-key.ts'
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
import { DATABASE_CLOCK } from './approval-statements.ts'
import type { Connection } from './connection.ts'
import { type LeaseClock, monotonicClock } from './lease-clock.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'

/** Stores calls that wait for clients in SQLite, as durable as the conversation itself. */
export class SqliteBrowserCallStore implements BrowserCallStore {
  readonly #connection: Connection
  readonly #statements: ReturnType<typeof prepareStatements>

  readonly #leaseNow: LeaseClock

  /** `clock` is the SQL expression of the clock for timeouts, in ms. */
  constructor(
    connection: Connection,
    clock: string = DATABASE_CLOCK,
    leaseClock: LeaseClock = monotonicClock,
  ) {
    this.#connection = connection
    this.#statements = prepareStatements(connection, clock)
    this.#leaseNow = leaseClock
  }

  async add({ chat, messageId, toolCallId }: BrowserCall, timeoutMs: number): Promise<void> {
    const names = [checkName('toolCallId', toolCallId), checkName('messageId', messageId)]
    const row = [...chatColumns(chat), ...names, timeoutMs]
    await this.#connection.write(() => this.#statements.add.run(...row), 'process-death')
  }

  async drop(chat: AppChatRef, toolCallIds: readonly string[]): Promise<void> {
    const key = chatColumns(chat)
    await this.#connection.write(() => {
      for (const id of toolCallIds) this.#statements.drop.run(...key, id)
    }, 'process-death')
  }

  async dropChat(chat: AppChatRef): Promise<void> {
    const key = chatColumns(chat)
    await this.#connection.write(() => this.#statements.dropChat.run(...key), 'process-death')
  }

  async takeDue({ appName, leaseMs, limit }: DueBrowserCalls): Promise<BrowserCall[]> {
    // Usually nothing is due, and this query takes no lock.
    if ((await this.#statements.isDue.select(appName, this.#leaseNow())).length === 0) return []
    const rows = await this.#connection.write(
      () => this.#statements.takeDue.rows(appName, this.#leaseNow(), leaseMs, limit),
      'process-death',
    )
    return rows.map((row) => decodeBrowserCall(appName, row))
  }

  async list(filter: {
    readonly chat?: AppChatRef
    readonly limit: number
  }): Promise<PendingBrowserCall[]> {
    const { chat, limit } = filter
    const { list, listChat } = this.#statements
    const rows = await (chat ? listChat.select(...chatColumns(chat), limit) : list.select(limit))
    return rows.map(decodePendingBrowserCall)
  }
}

function prepareStatements(connection: Connection, clock: string) {
  const chat = 'app_name = ? AND principal_id = ? AND chat_id = ?'
  return {
    add: connection.prepare(`
      INSERT INTO waits (app_name, principal_id, chat_id, tool_call_id, message_id, deadline)
      VALUES (?, ?, ?, ?, ?, ${clock} + ?) ON CONFLICT DO NOTHING`),
    list: connection.prepare<PendingBrowserCallRow>(
      'SELECT * FROM waits ORDER BY deadline LIMIT ?',
    ),
    listChat: connection.prepare<PendingBrowserCallRow>(
      `SELECT * FROM waits WHERE ${chat} ORDER BY deadline LIMIT ?`,
    ),
    drop: connection.prepare(`DELETE FROM waits WHERE ${chat} AND tool_call_id = ?`),
    dropChat: connection.prepare(`DELETE FROM waits WHERE ${chat}`),
    isDue: connection.prepare<{ due: number }>(
      `SELECT 1 AS due FROM waits
      WHERE app_name = ?1 AND deadline <= ${clock} AND coalesce(taken_at + lease_ms, ?2) <= ?2 LIMIT 1`,
    ),
    takeDue: connection.prepare<BrowserCallRow>(`
      UPDATE waits SET taken_at = ?2, lease_ms = ?3
      WHERE wait IN (
        SELECT wait FROM waits
        WHERE app_name = ?1 AND deadline <= ${clock} AND coalesce(taken_at + lease_ms, ?2) <= ?2
        ORDER BY coalesce(taken_at, 0), deadline LIMIT ?4)
      RETURNING principal_id, chat_id, tool_call_id, message_id`),
  }
}
