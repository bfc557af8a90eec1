import { isRefusal } from '../../approvals/approval.ts'
import type { StoredGrant } from '../../approvals/grant.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { GrantState, ShownGrant } from '../../protocol/grants.ts'
import { reply } from '../../server/http/exchange.ts'
import type { Route } from '../../server/http/http-router.ts'
import { fromExactAmount, unitOf } from '../../shared/exact-amounts.ts'
import { withoutUndefined } from '../../shared/collections.ts'
import type { Core } from '../module.ts'
import { endGrant, exactMax } from './next-grant.ts'

/** The routes of grants: a person lists the grants in their chats, and revokes one. */
export function grantRoutes({ backend }: Core): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/grants',
      handle: async ({ principal }) => {
        const { store, appName } = await backend.get()
        const found = (await store.grants?.list({ appName, principalId: principal.id })) ?? []
        const grants = found.map(toShown).filter(({ state }) => state !== 'ended')
        return reply(200, { grants })
      },
    },
    {
      method: 'DELETE',
      path: '/grants/:id',
      handle: async ({ principal, id }) => {
        const { store, ledger, appName } = await backend.get()
        const owner = { appName, principalId: principal.id }
        const grant = await store.grants?.get(owner, id)
        if (!grant) throw new ProtocolError('unknown-approval', { message: NO_GRANT })
        if (grant.state === 'open' || grant.state === 'suspended') {
          const end = endGrant(grant, { revokedBy: principal.id })
          // Retention may have removed the approval with which it was given.
          if (isRefusal(await ledger.note(grant.approvalId, end)))
            await store.grants?.remove(owner, id)
        }
        const ended = (await store.grants?.get(owner, id)) ?? { ...grant, state: 'revoked' }
        return reply(200, { grant: toShown(ended) })
      },
    },
  ]
}

const NO_GRANT = 'There is no such grant.'

function toShown(grant: StoredGrant): ShownGrant {
  const { id, chat, toolName, title, offer, pinned, uses, spent, grantedAt, expiresAt } = grant
  const { effect, free, scope, budget, maxUses } = offer
  const unit = budget && unitOf(budget.max)
  return {
    id,
    effect,
    free,
    scope,
    state: stateOf(grant),
    chatId: chat.chatId,
    toolName,
    pinned: { ...pinned },
    uses,
    at: grantedAt,
    ...withoutUndefined({ title, budget, maxUses, expiresAt }),
    ...(unit && { spent: fromExactAmount(spent, unit) }),
  }
}

/** Returns the state of a grant that people see. The store lists none whose time is over. */
function stateOf({ state, offer, uses, spent }: StoredGrant): GrantState {
  const { budget, maxUses = Infinity } = offer
  const isUsedUp = uses >= maxUses || (budget !== undefined && spent >= exactMax(budget))
  return state === 'open' && isUsedUp ? 'ended' : state
}
