import { randomUUID } from 'node:crypto'

import * as z from 'zod'

import type { PriorDecisions } from '../../calls/prior-decisions.ts'
import { isRefusal } from '../../approvals/approval.ts'
import type { GrantStore } from '../../store/tables/grants.ts'
import type { CoreSettings, OpenModule } from '../module.ts'
import { grantRoutes } from './grant-routes.ts'
import { byGiving, decideByGrant, endGrant } from './next-grant.ts'
import { judgePlans, listPlanTools, PlanCalls } from './plans.ts'
import { hasUntrustedText } from './untrusted-text.ts'

/** The option of `createBridge` for grants. */
export interface GrantsBridgeOptions {
  /** How grants are treated that policies offer (`grants`). */
  readonly grants?: GrantOptions
}

interface GrantOptions {
  /**
   * The names or patterns of tools whose results may contain text of strangers, such as web pages and mail. When such a result enters a
   * conversation, earlier grants to approve are suspended in it. Results of MCP tools that do not say `openWorldHint: false`, of remote
   * agents and of searches always count. Default: no others.
   */
  readonly untrustedTools?: readonly string[]
}

export const GrantsBridgeOptionsSchema = {
  grants: z
    .strictObject({
      untrustedTools: z.array(z.string().min(1)).readonly().optional(),
    } satisfies Record<keyof GrantOptions, z.ZodType>)
    .optional(),
}

/** Decisions of people for calls that follow. */
export const openGrants: OpenModule<GrantsBridgeOptions> = (settings) => {
  const planTools = listPlanTools(settings)
  return {
    ...(planTools.size > 0 && {
      openKinds: () => [new PlanCalls()],
      extendPolicy: (policy) => judgePlans(planTools, policy, settings.onError),
    }),
    openPrior: ({ grants }) => grants && createPriorDecisions(grants, settings),
    waitingCalls: { onChatDeleted: async ({ store }, chat) => store.grants?.dropChat(chat) },
    createRoutes: grantRoutes,
  }
}

/** How many approvals are read to see how fast a person approves. */
const MAX_RECENT = 50

function createPriorDecisions(
  store: GrantStore,
  { agents, grants: { untrustedTools = [] } = {} }: CoreSettings & GrantsBridgeOptions,
): PriorDecisions {
  return {
    find: async (call, ledger) => {
      const { chat, events } = call
      const open = await store.list(chat)
      const found = open.flatMap((grant) => {
        const decision = decideByGrant(grant, call, ledger.policyVersion)
        return decision ? [{ grant, decision }] : []
      })
      // A denial wins over a grant to approve, in whatever order they were given.
      const denial = found.find(({ decision }) => !decision.approved)
      if (denial) return denial.decision
      for (const { grant, decision } of found) {
        const since = grant.chat.chatId === chat.chatId ? grant.toolCallId : ''
        if (!(await hasUntrustedText(events, since, { agents, untrustedTools }))) return decision
        const ended = { suspendedIn: chat.chatId }
        const noted = await ledger.note(grant.approvalId, endGrant(grant, ended))
        if (isRefusal(noted)) await store.remove(grant.chat, grant.id)
      }
      return undefined
    },
    choose: async (offerId, by, ledger) => {
      const { policyVersion } = ledger
      // A store that cannot list decided approvals does not limit how fast a person approves.
      const recent = (await ledger.listVisible({ reader: by, limit: MAX_RECENT })) ?? []
      return byGiving({ grantId: randomUUID(), offerId, policyVersion, recent })
    },
  }
}
