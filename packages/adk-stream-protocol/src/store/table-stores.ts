import { randomBytes } from 'node:crypto'

import type { Signal } from '../relay/relay.ts'
import { chatColumns, checkName, isStorable, ownerColumns } from './keys.ts'
import type {
  BrowserCall,
  BrowserCallStore,
  ChatEntry,
  ChatStore,
  CredentialStore,
  LiveSessionStore,
  Store,
} from './store.ts'
import { StoreError } from './store-error.ts'

// The parts of a store that have one or two tables each. Databases differ only in the statements.

/** Runs a statement in a transaction of its own. Returns the rows of its result. */
export type Query<Row = unknown> = (...values: readonly QueryValue[]) => Promise<readonly Row[]>

export type QueryValue = string | number | Buffer | null | readonly string[]

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

/** The statements for calls that wait for a client. */
interface BrowserCallQueries {
  readonly add: Query
  /** The values are the columns of a chat, and a list of call ids. */
  readonly drop: Query
  readonly dropChat: Query
  /** The values are the application, the lease in ms and the limit. */
  readonly takeDue: Query<BrowserCallRow>
  readonly list: Query<PendingBrowserCallRow>
  readonly listChat: Query<PendingBrowserCallRow>
}

export interface BrowserCallRow {
  readonly principal_id: string
  readonly chat_id: string
  readonly tool_call_id: string
  readonly message_id: string
}

interface PendingBrowserCallRow extends BrowserCallRow {
  readonly app_name: string
  readonly deadline: number
}

export function browserCallStore(queries: BrowserCallQueries): BrowserCallStore {
  return {
    async add({ chat, messageId, toolCallId }, timeoutMs) {
      const names = [checkName('toolCallId', toolCallId), checkName('messageId', messageId)]
      await queries.add(...chatColumns(chat), ...names, timeoutMs)
    },
    async drop(chat, toolCallIds) {
      await queries.drop(...chatColumns(chat), toolCallIds.filter(isStorable))
    },
    async dropChat(chat) {
      await queries.dropChat(...chatColumns(chat))
    },
    async takeDue({ appName, leaseMs, limit }) {
      const rows = await queries.takeDue(checkName('appName', appName), leaseMs, limit)
      return rows.map((row) => decodeBrowserCall(appName, row))
    },
    async list({ chat, limit }) {
      const rows = await (chat
        ? queries.listChat(...chatColumns(chat), limit)
        : queries.list(limit))
      return rows.map((row) => ({
        ...decodeBrowserCall(row.app_name, row),
        deadline: row.deadline,
      }))
    },
  }
}

function decodeBrowserCall(appName: string, row: BrowserCallRow): BrowserCall {
  return {
    chat: { appName, principalId: row.principal_id, chatId: row.chat_id },
    messageId: row.message_id,
    toolCallId: row.tool_call_id,
  }
}

/** A binary column. SQLite returns an ArrayBuffer. */
type Bytes = Buffer | ArrayBuffer

function toBuffer(bytes: Bytes): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes)
}

/** The statements for the state of live sessions. */
interface LiveSessionQueries {
  /** The values are the columns of a chat, the state, the columns of a lock with its token, and the maximum age. */
  readonly save: Query
  readonly find: Query<{ readonly state: Bytes }>
  readonly drop: Query
}

export function liveSessionStore(queries: LiveSessionQueries): LiveSessionStore {
  return {
    async save(chat, state, { lock, maxAgeMs }) {
      const row = [...chatColumns(chat), Buffer.from(state)]
      const saved = await queries.save(...row, ...chatColumns(lock.chat), lock.token, maxAgeMs)
      return saved.length > 0
    },
    async find(chat) {
      const [row] = await queries.find(...chatColumns(chat))
      return row && toBuffer(row.state)
    },
    async drop(chat) {
      await queries.drop(...chatColumns(chat))
    },
  }
}

/** The statements for credentials. Those that change a credential return a row if they did. */
interface CredentialQueries {
  readonly list: Query<CredentialRow>
  readonly put: Query
  /** Its last value is the version to replace. */
  readonly replace: Query
  readonly remove: Query
  readonly lockRefresh: Query
  readonly touch: Query
  readonly addAttempt: Query
  readonly takeAttempt: Query<AttemptRow>
  readonly removeOld: (unusedMs: number) => Promise<void>
}

interface CredentialRow {
  readonly name: string
  readonly sealed: Bytes
  readonly version: number
  readonly used_at: number
}

export interface AttemptRow {
  readonly principal_id: string
  readonly sealed: Bytes
  readonly is_valid: boolean | number
}

export function credentialStore(queries: CredentialQueries): CredentialStore {
  return {
    async list(owner) {
      const rows = await queries.list(...ownerColumns(owner))
      return rows.map(({ name, sealed, version, used_at: usedAt }) => ({
        name,
        sealed: toBuffer(sealed),
        version,
        usedAt,
      }))
    },
    async save(owner, { name, sealed, version }) {
      const row = [...ownerColumns(owner), checkName('name', name), Buffer.from(sealed)]
      const saved = await (version === undefined
        ? queries.put(...row)
        : queries.replace(...row, version))
      return saved.length > 0
    },
    async remove(owner, name) {
      const removed = await queries.remove(...ownerColumns(owner), checkName('name', name))
      return removed.length > 0
    },
    async lockRefresh(owner, { name, version, leaseMs }) {
      const key = [...ownerColumns(owner), checkName('name', name)]
      return (await queries.lockRefresh(...key, version, leaseMs)).length > 0
    },
    async touch(owner, name) {
      await queries.touch(...ownerColumns(owner), checkName('name', name))
    },
    async addAttempt(owner, { id, sealed, maxAgeMs }) {
      const key = [...ownerColumns(owner), checkName('id', id)]
      await queries.addAttempt(...key, Buffer.from(sealed), maxAgeMs)
    },
    async takeAttempt(appName, id) {
      const key = [checkName('appName', appName), checkName('id', id)]
      const [row] = await queries.takeAttempt(...key)
      if (!row?.is_valid) return undefined
      return { principalId: row.principal_id, sealed: toBuffer(row.sealed) }
    },
    removeOld: queries.removeOld,
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

export interface SignalRow {
  readonly id: string
  readonly sender: string
  readonly kind: string
  readonly body: string
}

export function decodeSignal({ id, sender, kind, body }: SignalRow): Signal {
  return { id, from: sender, kind, body: JSON.parse(body) as unknown }
}
