import { IN_CHAT, queriesOf } from './queries.ts'
import type { ChatStore, Store } from '../store.ts'
import { chatStore, secretReader } from '../table-stores.ts'
import type { Connection } from './connection.ts'

/** Stores the entries of the chat list, as durable as the conversation itself. */
export function sqliteChats(connection: Connection): ChatStore {
  const { read, write, writeDurably } = queriesOf(connection)
  const remove = writeDurably(`DELETE FROM chats WHERE ${IN_CHAT} RETURNING 1`)
  return chatStore({
    find: read(`
      SELECT chat_id, name, title, created_at, agent FROM chats
      WHERE app_name = ? AND principal_id = ? AND chat_id IN (SELECT value FROM json_each(?))`),
    note: write(`
      INSERT INTO chats (app_name, principal_id, chat_id, title, created_at) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET title = excluded.title, created_at = excluded.created_at`),
    rename: write(`
      INSERT INTO chats (app_name, principal_id, chat_id, name) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET name = excluded.name`),
    assignAgent: writeDurably(`
      INSERT INTO chats (app_name, principal_id, chat_id, agent) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET agent = coalesce(agent, excluded.agent) RETURNING agent`),
    forgetNote: write(`UPDATE chats SET title = NULL, created_at = NULL WHERE ${IN_CHAT}`),
    drop: async (...key) => {
      const dropped = await remove(...key)
      if (dropped.length > 0) await connection.emptyLog()
      return dropped
    },
  })
}

export function sqliteSecrets(connection: Connection): Store['secret'] {
  const { read, writeDurably } = queriesOf(connection)
  return secretReader({
    read: read('SELECT value FROM secrets WHERE name = ?'),
    create: writeDurably('INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING'),
  })
}
