import { randomBytes } from 'node:crypto'

import type { FeatureDatabase } from './tables/feature-tables.ts'
import type { Bytes } from './tables/query.ts'
import { toBuffer } from './tables/query.ts'
import { chatColumns, checkName, isStorable, ownerColumns } from './keys.ts'
import type { ChatEntry, ChatStore, Store } from './store.ts'
import { StoreError } from './store-error.ts'

interface ChatRow {
  readonly chat_id: string
  readonly name: string | null
  readonly title: string | null
  readonly created_at: number | null
  readonly agent: string | null
}

/** Stores the entries of the chat list, as durable as the conversation itself. `onDropped` is called when one was removed. */
export function openChats(
  { read, write, writeDurably }: FeatureDatabase,
  onDropped?: () => Promise<unknown>,
): ChatStore {
  const inChat = 'app_name = $1 AND principal_id = $2 AND chat_id = $3'
  const known = 'ON CONFLICT (app_name, principal_id, chat_id)'
  const find = read<ChatRow>(`
    SELECT chat_id, name, title, created_at, agent FROM $schema.chats
    WHERE app_name = $1 AND principal_id = $2 AND chat_id = ANY ($3::text[])`)
  const note = write(`
    INSERT INTO $schema.chats (app_name, principal_id, chat_id, title, created_at)
    VALUES ($1, $2, $3, $4, $5::double precision)
    ${known} DO UPDATE SET title = excluded.title, created_at = excluded.created_at`)
  const rename = write(`
    INSERT INTO $schema.chats (app_name, principal_id, chat_id, name) VALUES ($1, $2, $3, $4)
    ${known} DO UPDATE SET name = excluded.name`)
  const assignAgent = writeDurably<{ readonly agent: string }>(`
    INSERT INTO $schema.chats AS chat (app_name, principal_id, chat_id, agent) VALUES ($1, $2, $3, $4)
    ${known} DO UPDATE SET agent = coalesce(chat.agent, excluded.agent) RETURNING agent`)
  const forgetNote = write(
    `UPDATE $schema.chats SET title = NULL, created_at = NULL WHERE ${inChat}`,
  )
  const drop = writeDurably(`DELETE FROM $schema.chats WHERE ${inChat} RETURNING 1`)
  return {
    async find(owner, chatIds) {
      const rows = await find(...ownerColumns(owner), chatIds.filter(isStorable))
      return new Map(rows.map((row) => [row.chat_id, decodeChatEntry(row)]))
    },
    async note(chat, { title, createdAt }) {
      await note(...chatColumns(chat), checkName('title', title), createdAt)
    },
    async rename(chat, name) {
      await rename(...chatColumns(chat), checkName('name', name))
    },
    async assignAgent(chat, agent) {
      const [row] = await assignAgent(...chatColumns(chat), checkName('agent', agent))
      return row?.agent ?? agent
    },
    async forgetNote(chat) {
      await forgetNote(...chatColumns(chat))
    },
    async drop(chat) {
      if ((await drop(...chatColumns(chat))).length > 0) await onDropped?.()
    },
  }
}

function decodeChatEntry({ name, title, created_at: createdAt, agent }: ChatRow): ChatEntry {
  return {
    ...(name !== null && { name }),
    ...(title !== null && { title }),
    ...(createdAt !== null && { createdAt }),
    ...(agent !== null && { agent }),
  }
}

/** Returns the function `secret` of a store. */
export function openSecrets({ read, writeDurably }: FeatureDatabase): Store['secret'] {
  const find = read<{ readonly value: Bytes }>('SELECT value FROM $schema.secrets WHERE name = $1')
  const create = writeDurably(
    'INSERT INTO $schema.secrets (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING',
  )
  return async (name) => {
    checkName('name', name)
    const [known] = await find(name)
    if (known !== undefined) return toBuffer(known.value)
    // Another process may create the secret first. The stored one counts.
    await create(name, randomBytes(32))
    const [created] = await find(name)
    if (created !== undefined) return toBuffer(created.value)
    throw new StoreError(
      'unavailable',
      `The secret ${name} was removed while it was being created. Try again.`,
    )
  }
}
