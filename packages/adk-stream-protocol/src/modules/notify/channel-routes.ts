import { ProtocolError } from '../../protocol/errors.ts'
import { withoutUndefined } from '../../shared/collections.ts'
import { toDecider } from '../../server/chats/decisions/decision-results.ts'
import { reply } from '../../server/http/exchange.ts'
import type { Route } from '../../server/http/http-router.ts'
import type { Core } from '../module.ts'
import type { ChannelActions, NoticeChannel, ApprovalSummary, NotifyOptions } from './notice.ts'
import { toSummary } from './notice.ts'

/** The endpoints of channels in which people decide. */
export function channelRoutes(core: Core, { channels }: NotifyOptions): Route[] {
  return Object.entries(channels).flatMap(([name, channel]): Route[] => {
    const { receive } = channel
    if (!receive) return []
    const actions = actionsOf(core, name, channel)
    return [
      {
        method: 'POST',
        path: `/channels/${name}`,
        access: 'anonymous',
        handle: async ({ exchange }) => {
          const bytes = await exchange.readBody(core.limits.maxBodyBytes)
          const body = Buffer.from(bytes).toString()
          const answer = await receive({ headers: exchange.headers, body }, actions)
          return reply(answer.status, answer.body)
        },
      },
    ]
  })
}

function actionsOf(
  { backend, decisions }: Core,
  name: string,
  channel: NoticeChannel,
): ChannelActions {
  const { mayApprove = isNotHigh } = channel
  const read: ChannelActions['read'] = async (person, approvalId) => {
    const { ledger } = await backend.get()
    const approval = await ledger.get(approvalId, toDecider(person))
    return approval && toSummary(approval)
  }
  return {
    read,
    decide: async (person, { account, approvalId, approved, reason }) => {
      const approval = await read(person, approvalId)
      if (!approval) throw new ProtocolError('unknown-approval')
      if (approved && !mayApprove(approval))
        throw new ProtocolError('not-allowed', { message: ONLY_IN_PAGE })
      const decision = { approvalId, approved, ...withoutUndefined({ reason }) }
      const via = { channel: name, account }
      await decisions.decideById(person, decision, () => ({ via }))
    },
  }
}

function isNotHigh({ severity }: ApprovalSummary): boolean {
  return severity !== 'high'
}

const ONLY_IN_PAGE = 'This call cannot be approved here. Open the page of the approval.'
