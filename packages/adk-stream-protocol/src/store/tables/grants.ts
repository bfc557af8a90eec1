import type { Grant, GrantWrite, StoredGrant } from '../../approvals/grant.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'
import { chatColumns, checkName, isStorable, ownerColumns, type Owner } from '../keys.ts'
import { StoreError } from '../store-error.ts'
import { decodeJson, encodeJson } from '../stored-json.ts'
import type { FeatureDatabase, FeatureStatements, SharedFeature } from './feature-tables.ts'

/**
 * Reads grants. They change only with the transitions of approvals: `writes` of a transition opens, uses or ends one in the same
 * transaction.
 */
export interface GrantStore {
  /** Lists the grants of a principal's chats that are open or suspended and whose time is not over, newest first. */
  list(owner: Owner): Promise<StoredGrant[]>
  /** Returns a grant of a principal's chats. Returns undefined if there is none. */
  get(owner: Owner, id: string): Promise<StoredGrant | undefined>
  /** Removes a grant. For one whose approval no longer exists. */
  remove(owner: Owner, id: string): Promise<void>
  /** Removes the grants that were given in a chat. */
  dropChat(chat: AppChatRef): Promise<void>
}

interface GrantRow {
  readonly body: string
  readonly state: string
  readonly uses: number
  readonly spent: number
}

export const GRANTS: SharedFeature<GrantStore> = {
  owned: ['grants'],
  ofChats: ['grants'],
  open,
  writes,
}

const OF_OWNER = 'app_name = $1 AND principal_id = $2'

function open({ clock, rowOrder, read, writeDurably }: FeatureDatabase): GrantStore {
  const select = `SELECT body, state, uses, spent FROM $schema.grants WHERE ${OF_OWNER}`
  const list = read<GrantRow>(`
    ${select} AND state IN ('open', 'suspended') AND (expires_at IS NULL OR expires_at > ${clock})
    ORDER BY ${rowOrder} DESC LIMIT 100`)
  const get = read<GrantRow>(`${select} AND grant_id = $3`)
  const remove = writeDurably(`DELETE FROM $schema.grants WHERE ${OF_OWNER} AND grant_id = $3`)
  const dropChat = writeDurably(`DELETE FROM $schema.grants WHERE ${OF_OWNER} AND chat_id = $3`)
  return {
    list: async (owner) => (await list(...ownerColumns(owner))).map(decode),
    get: async (owner, id) =>
      isStorable(id) ? (await get(...ownerColumns(owner), id)).map(decode)[0] : undefined,
    async remove(owner, id) {
      await remove(...ownerColumns(owner), id)
    },
    async dropChat(chat) {
      await dropChat(...chatColumns(chat))
    },
  }
}

function writes(clock: string): FeatureStatements<GrantWrite> {
  const replace = `
    UPDATE $schema.grants SET state = 'replaced'
    WHERE ${OF_OWNER} AND tool_name = $4 AND scope = $5 AND (scope = 'person' OR chat_id = $3) AND state = 'open'`
  const replacePlan = `
    UPDATE $schema.grants SET state = 'replaced'
    WHERE ${OF_OWNER} AND chat_id = $3 AND scope = '${PLAN_SCOPE}' AND state = 'open'`
  const add = `
    INSERT INTO $schema.grants (app_name, principal_id, chat_id, grant_id, tool_name, scope, max_uses, max_spent, expires_at,
      body, state, uses, spent)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'open', 0, 0)`
  // Of two servers that use the same grant, the later one waits for the row, and then checks it again.
  const use = `
    UPDATE $schema.grants SET uses = uses + 1, spent = spent + $4::bigint
    WHERE ${OF_OWNER} AND grant_id = $3 AND state = 'open' AND (expires_at IS NULL OR expires_at > ${clock})
      AND (max_uses IS NULL OR uses < max_uses) AND (max_spent IS NULL OR spent + $4::bigint <= max_spent)
    RETURNING 1`
  const end = `
    UPDATE $schema.grants SET state = $4 WHERE ${OF_OWNER} AND grant_id = $3 AND state IN ('open', 'suspended')`
  return {
    open: (write) => {
      const row = toGrantRow(write)
      const [appName = '', principalId = '', chatId = '', , toolName = '', scope = ''] = row
      return [
        { sql: replace, values: [appName, principalId, chatId, toolName, scope] },
        { sql: add, values: row },
      ]
    },
    'open-plan': ({ chat, grants }) => [
      { sql: replacePlan, values: chatColumns(chat) },
      ...grants.map((grant) => ({ sql: add, values: toGrantRow({ grant }) })),
    ],
    use: ({ owner, id, amount }) => [
      { sql: use, values: [...ownerColumns(owner), id, amount], needsRows: true },
    ],
    end: ({ owner, id, state }) => [{ sql: end, values: [...ownerColumns(owner), id, state] }],
  }
}

function decode({ body, state, uses, spent }: GrantRow): StoredGrant {
  // `toGrantRow` encoded it.
  return { ...(decodeJson(body) as Grant), state: readState(state), uses, spent }
}

function readState(state: string): StoredGrant['state'] {
  if (state === 'open' || state === 'suspended' || state === 'revoked' || state === 'replaced')
    return state
  throw new StoreError('corrupt', `A grant has the unknown state ${state}.`)
}

type GrantValue = string | number | null

/** The scope in the rows of the grants of plans, which other grants do not replace. */
const PLAN_SCOPE = 'plan'

/** Returns the values of a new grant: owner, chat, id, tool, scope, limits, end, and the rest as JSON. */
function toGrantRow({
  grant,
  max,
}: Omit<Extract<GrantWrite, { readonly type: 'open' }>, 'type'>): GrantValue[] {
  const { chat, id, toolName, offer, expiresAt, plan } = grant
  return [
    ...chatColumns(chat),
    checkName('id', id),
    checkName('toolName', toolName),
    plan ? PLAN_SCOPE : offer.scope,
    offer.maxUses ?? null,
    max ?? null,
    expiresAt ?? null,
    encodeJson(grant),
  ]
}
