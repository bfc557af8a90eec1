import type { AppChatRef } from '../../shared/chat-ref.ts'
import { chatColumns, type ChatRow, decodeChatEntry } from '../chat-rows.ts'
import type { ChatEntry, ChatNote, ChatStore } from '../chat-store.ts'
import { checkName, isStorable } from '../session-key.ts'
import type { Database } from './database.ts'

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
