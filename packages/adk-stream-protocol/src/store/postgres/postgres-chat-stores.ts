import type { AppChatRef } from '../../shared/chat-ref.ts'
import type { BrowserCallRow, ChatRow, PendingBrowserCallRow } from '../rows.ts'
import {
  chatColumns,
  decodeBrowserCall,
  decodeChatEntry,
  decodePendingBrowserCall,
} from '../rows.ts'
import { checkName, isStorable } from '../session-key.ts'
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
import type { Clocks, Database } from './database.ts'

/** Stores the entries of the chat list in PostgreSQL. */
export class PostgresChatStore implements ChatStore {
  readonly #database: Database
  readonly #sql: ReturnType<typeof chatSql>

  constructor(database: Database, schema: string) {
    this.#database = database
    this.#sql = chatSql(schema)
  }

  async find(
    { appName, principalId }: Omit<AppChatRef, 'chatId'>,
    chatIds: readonly string[],
  ): Promise<Map<string, ChatEntry>> {
    const owner = [checkName('appName', appName), checkName('principalId', principalId)]
    const values = [...owner, chatIds.filter(isStorable)]
    const rows = await this.#database.query<ChatRow>(this.#sql.find, values)
    return new Map(rows.map((row) => [row.chat_id, decodeChatEntry(row)]))
  }

  async note(chat: AppChatRef, { title, createdAt }: ChatNote): Promise<void> {
    const row = [...chatColumns(chat), checkName('title', title), createdAt]
    await this.#database.query(this.#sql.note, row)
  }

  async rename(chat: AppChatRef, name: string): Promise<void> {
    await this.#database.query(this.#sql.rename, [...chatColumns(chat), checkName('name', name)])
  }

  async assignAgent(chat: AppChatRef, agent: string): Promise<string> {
    const row = [...chatColumns(chat), checkName('agent', agent)]
    const rows = await this.#database.query<{ agent: string }>(this.#sql.assignAgent, row)
    return rows[0]?.agent ?? agent
  }

  async forgetNote(chat: AppChatRef): Promise<void> {
    await this.#database.query(this.#sql.forgetNote, chatColumns(chat))
  }

  async drop(chat: AppChatRef): Promise<void> {
    await this.#database.query(this.#sql.drop, chatColumns(chat))
  }
}

function chatSql(schema: string) {
  const chats = `${schema}.chats`
  const inChat = 'app_name = $1 AND principal_id = $2 AND chat_id = $3'
  const key = '(app_name, principal_id, chat_id)'
  return {
    find: `
      SELECT chat_id, name, title, created_at, agent FROM ${chats}
      WHERE app_name = $1 AND principal_id = $2 AND chat_id = ANY ($3::text[])`,
    note: `
      INSERT INTO ${chats} (app_name, principal_id, chat_id, title, created_at)
      VALUES ($1, $2, $3, $4, $5::double precision)
      ON CONFLICT ${key} DO UPDATE SET title = excluded.title, created_at = excluded.created_at`,
    rename: `
      INSERT INTO ${chats} (app_name, principal_id, chat_id, name) VALUES ($1, $2, $3, $4)
      ON CONFLICT ${key} DO UPDATE SET name = excluded.name`,
    assignAgent: `
      INSERT INTO ${chats} AS chat (app_name, principal_id, chat_id, agent) VALUES ($1, $2, $3, $4)
      ON CONFLICT ${key} DO UPDATE SET agent = coalesce(chat.agent, excluded.agent) RETURNING agent`,
    forgetNote: `UPDATE ${chats} SET title = NULL, created_at = NULL WHERE ${inChat}`,
    drop: `DELETE FROM ${chats} WHERE ${inChat}`,
  }
}

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
