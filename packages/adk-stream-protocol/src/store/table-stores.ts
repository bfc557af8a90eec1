import { randomBytes } from 'node:crypto'

import type { Query, Bytes } from './tables/query.ts'
import { toBuffer } from './tables/query.ts'
import { chatColumns, checkName, isStorable, ownerColumns } from './keys.ts'
import type { ChatEntry, ChatStore, Store } from './store.ts'
import { StoreError } from './store-error.ts'

// The parts of a store that have one or two tables each. Databases differ only in the statements.

/** The statements of the chat list. Their first values are the columns of a chat. */
interface ChatQueries {
  /** The values are the two columns of the owner, and a list of chat ids. */
  readonly find: Query<ChatRow>
  readonly note: Query
  readonly rename: Query
  readonly assignAgent: Query<{ readonly agent: string }>
  readonly forgetNote: Query
  readonly drop: Query
}

interface ChatRow {
  readonly chat_id: string
  readonly name: string | null
  readonly title: string | null
  readonly created_at: number | null
  readonly agent: string | null
}

export function chatStore(queries: ChatQueries): ChatStore {
  return {
    async find(owner, chatIds) {
      const rows = await queries.find(...ownerColumns(owner), chatIds.filter(isStorable))
      return new Map(rows.map((row) => [row.chat_id, decodeChatEntry(row)]))
    },
    async note(chat, { title, createdAt }) {
      await queries.note(...chatColumns(chat), checkName('title', title), createdAt)
    },
    async rename(chat, name) {
      await queries.rename(...chatColumns(chat), checkName('name', name))
    },
    async assignAgent(chat, agent) {
      const [row] = await queries.assignAgent(...chatColumns(chat), checkName('agent', agent))
      return row?.agent ?? agent
    },
    async forgetNote(chat) {
      await queries.forgetNote(...chatColumns(chat))
    },
    async drop(chat) {
      await queries.drop(...chatColumns(chat))
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
export function secretReader(queries: {
  readonly read: Query<{ readonly value: Bytes }>
  readonly create: Query
}): Store['secret'] {
  return async (name) => {
    checkName('name', name)
    const [known] = await queries.read(name)
    if (known !== undefined) return toBuffer(known.value)
    // Another process may create the secret first. The stored one counts.
    await queries.create(name, randomBytes(32))
    const [created] = await queries.read(name)
    if (created !== undefined) return toBuffer(created.value)
    throw new StoreError(
      'unavailable',
      `The secret ${name} was removed while it was being created. Try again.`,
    )
  }
}
