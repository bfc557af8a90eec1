import { IN_CHAT, CHAT_KEY, queryOf } from './queries.ts'
import type { ChatStore, Store } from '../store.ts'
import { chatStore, secretReader } from '../table-stores.ts'
import type { Database } from './database.ts'

/** Stores the entries of the chat list. `schema` is a quoted name, here and below. */
export function postgresChats(database: Database, schema: string): ChatStore {
  const query = queryOf(database)
  const chats = `${schema}.chats`
  return chatStore({
    find: query(`
      SELECT chat_id, name, title, created_at, agent FROM ${chats}
      WHERE app_name = $1 AND principal_id = $2 AND chat_id = ANY ($3::text[])`),
    note: query(`
      INSERT INTO ${chats} (app_name, principal_id, chat_id, title, created_at)
      VALUES ($1, $2, $3, $4, $5::double precision)
      ON CONFLICT ${CHAT_KEY} DO UPDATE SET title = excluded.title, created_at = excluded.created_at`),
    rename: query(`
      INSERT INTO ${chats} (app_name, principal_id, chat_id, name) VALUES ($1, $2, $3, $4)
      ON CONFLICT ${CHAT_KEY} DO UPDATE SET name = excluded.name`),
    assignAgent: query(`
      INSERT INTO ${chats} AS chat (app_name, principal_id, chat_id, agent) VALUES ($1, $2, $3, $4)
      ON CONFLICT ${CHAT_KEY} DO UPDATE SET agent = coalesce(chat.agent, excluded.agent) RETURNING agent`),
    forgetNote: query(`UPDATE ${chats} SET title = NULL, created_at = NULL WHERE ${IN_CHAT}`),
    drop: query(`DELETE FROM ${chats} WHERE ${IN_CHAT}`),
  })
}

export function postgresSecrets(database: Database, schema: string): Store['secret'] {
  const query = queryOf(database)
  return secretReader({
    read: query(`SELECT value FROM ${schema}.secrets WHERE name = $1`),
    create: query(
      `INSERT INTO ${schema}.secrets (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
    ),
  })
}
