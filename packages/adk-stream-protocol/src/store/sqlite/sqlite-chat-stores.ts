import type { AppChatRef } from '../../shared/chat-ref.ts'
import type { BrowserCallRow, ChatRow, PendingBrowserCallRow } from '../rows.ts'
import {
  chatColumns,
  decodeBrowserCall,
  decodeChatEntry,
  decodePendingBrowserCall,
} from '../rows.ts'
import { checkName } from '../session-key.ts'
import type {
  BrowserCall,
  BrowserCallStore,
  ChatEntry,
  ChatNote,
  ChatStore,
  DueBrowserCalls,
  LiveSessionStore,
  PendingBrowserCall,
  SaveOptions,
} from '../store.ts'
import { DATABASE_CLOCK } from './approval-sql.ts'
import type { Connection } from './connection.ts'
import type { LeaseClock } from './lease-clock.ts'
import { monotonicClock } from './lease-clock.ts'

/** Stores the entries of the chat list in SQLite, as durable as the conversation itself. */
export class SqliteChatStore implements ChatStore {
  readonly #connection: Connection
  readonly #statements: ReturnType<typeof prepareChats>

  constructor(connection: Connection) {
    this.#connection = connection
    this.#statements = prepareChats(connection)
  }

  async find(
    { appName, principalId }: Omit<AppChatRef, 'chatId'>,
    chatIds: readonly string[],
  ): Promise<Map<string, ChatEntry>> {
    const owner = [checkName('appName', appName), checkName('principalId', principalId)]
    const rows = await this.#statements.find.select(...owner, JSON.stringify(chatIds))
    return new Map(rows.map((row) => [row.chat_id, decodeChatEntry(row)]))
  }

  async note(chat: AppChatRef, { title, createdAt }: ChatNote): Promise<void> {
    await this.#write(() =>
      this.#statements.note.run(...chatColumns(chat), checkName('title', title), createdAt),
    )
  }

  async rename(chat: AppChatRef, name: string): Promise<void> {
    await this.#write(() =>
      this.#statements.rename.run(...chatColumns(chat), checkName('name', name)),
    )
  }

  async assignAgent(chat: AppChatRef, agent: string): Promise<string> {
    const row = [...chatColumns(chat), checkName('agent', agent)] as const
    const rows = await this.#connection.write(() => this.#statements.assignAgent.rows(...row))
    return rows[0]?.agent ?? agent
  }

  async forgetNote(chat: AppChatRef): Promise<void> {
    await this.#write(() => this.#statements.forgetNote.run(...chatColumns(chat)))
  }

  async drop(chat: AppChatRef): Promise<void> {
    const key = chatColumns(chat)
    const dropped = await this.#connection.write(() => this.#statements.drop.run(...key))
    if (dropped > 0) await this.#connection.emptyLog()
  }

  async #write(work: () => number): Promise<void> {
    await this.#connection.write(work, 'process-death')
  }
}

function prepareChats(connection: Connection) {
  const chat = 'app_name = ? AND principal_id = ? AND chat_id = ?'
  return {
    find: connection.prepare<ChatRow>(`
      SELECT chat_id, name, title, created_at, agent FROM chats
      WHERE app_name = ? AND principal_id = ? AND chat_id IN (SELECT value FROM json_each(?))`),
    note: connection.prepare(`
      INSERT INTO chats (app_name, principal_id, chat_id, title, created_at) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET title = excluded.title, created_at = excluded.created_at`),
    rename: connection.prepare(`
      INSERT INTO chats (app_name, principal_id, chat_id, name) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET name = excluded.name`),
    assignAgent: connection.prepare<{ readonly agent: string }>(`
      INSERT INTO chats (app_name, principal_id, chat_id, agent) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET agent = coalesce(agent, excluded.agent) RETURNING agent`),
    forgetNote: connection.prepare(
      `UPDATE chats SET title = NULL, created_at = NULL WHERE ${chat}`,
    ),
    drop: connection.prepare(`DELETE FROM chats WHERE ${chat}`),
  }
}

/** Stores calls that wait for clients in SQLite, as durable as the conversation itself. */
export class SqliteBrowserCallStore implements BrowserCallStore {
  readonly #connection: Connection
  readonly #statements: ReturnType<typeof prepareBrowserCalls>

  readonly #leaseNow: LeaseClock

  /** `clock` is the SQL expression of the clock for timeouts, in ms. */
  constructor(
    connection: Connection,
    clock: string = DATABASE_CLOCK,
    leaseClock: LeaseClock = monotonicClock,
  ) {
    this.#connection = connection
    this.#statements = prepareBrowserCalls(connection, clock)
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

function prepareBrowserCalls(connection: Connection, clock: string) {
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

/** Stores the state of live sessions in SQLite. */
export class SqliteLiveSessionStore implements LiveSessionStore {
  readonly #connection: Connection
  readonly #statements: ReturnType<typeof prepareLiveSessions>

  /** `clock` is an SQL expression, in ms. */
  constructor(connection: Connection, clock: string = DATABASE_CLOCK) {
    this.#connection = connection
    this.#statements = prepareLiveSessions(connection, clock)
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

function prepareLiveSessions(connection: Connection, clock: string) {
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
