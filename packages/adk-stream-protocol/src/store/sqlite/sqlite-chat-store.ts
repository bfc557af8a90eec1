import type { ChatEntry, ChatNote, ChatStore } from '../chat-store.ts'
import { checkName } from '../session-key.ts'
import { chatColumns, type ChatRow, decodeChatEntry } from '../chat-rows.ts'
import type { Connection } from './connection.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'

/** Stores the entries of the chat list in SQLite, as durable as the conversation itself. */
export class SqliteChatStore implements ChatStore {
  readonly #connection: Connection
  readonly #statements: ReturnType<typeof prepareStatements>

  constructor(connection: Connection) {
    this.#connection = connection
    this.#statements = prepareStatements(connection)
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

function prepareStatements(connection: Connection) {
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
