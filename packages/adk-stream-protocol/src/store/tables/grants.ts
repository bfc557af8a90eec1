import type { Grant, GrantWrite, StoredGrant } from '../../approvals/grant.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'
import { chatColumns, checkName, isStorable, ownerColumns, type Owner } from '../keys.ts'
import { StoreError } from '../store-error.ts'
import { decodeJson, encodeJson } from '../stored-json.ts'
import type { Query } from './query.ts'

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

/** The statements of grants. Their first values are the two columns of the owner. */
interface GrantQueries {
  readonly list: Query<GrantRow>
  readonly get: Query<GrantRow>
  readonly remove: Query
  readonly dropChat: Query
}

interface GrantRow {
  readonly body: string
  readonly state: string
  readonly uses: number
  readonly spent: number
}

export function grantStore(queries: GrantQueries): GrantStore {
  return {
    async list(owner) {
      return (await queries.list(...ownerColumns(owner))).map(decode)
    },
    async get(owner, id) {
      if (!isStorable(id)) return undefined
      return (await queries.get(...ownerColumns(owner), id)).map(decode)[0]
    },
    async remove(owner, id) {
      await queries.remove(...ownerColumns(owner), id)
    },
    async dropChat(chat) {
      await queries.dropChat(...chatColumns(chat))
    },
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
export const PLAN_SCOPE = 'plan'

/** Returns the values of a new grant: owner, chat, id, tool, scope, limits, end, and the rest as JSON. */
export function toGrantRow({
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
