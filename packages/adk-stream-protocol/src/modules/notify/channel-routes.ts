import type { Approval } from '../../approvals/approval.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { withoutUndefined } from '../../shared/collections.ts'
import type { Principal } from '../../server/auth/authenticate.ts'
import { toDecider } from '../../server/chats/decisions/decision-results.ts'
import { reply } from '../../server/http/exchange.ts'
import type { Route } from '../../server/http/http-router.ts'
import type { Core } from '../module.ts'
import type { ChannelActions, NoticeChannel, NotifyOptions } from './notice.ts'
import { isHarmless, readSummary } from './notice.ts'

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

/** Lets the channels listen that open a connection of their own. Returns a function that ends this. */
export function listenToChannels(core: Core, { channels }: NotifyOptions): () => Promise<void> {
  const closing = new AbortController()
  const { signal } = closing
  const listening = Object.entries(channels).map(async ([name, channel]) => {
    try {
      await channel.listen?.(actionsOf(core, name, channel), { signal, onError: core.onError })
    } catch (error) {
      core.onError(error)
    }
  })
  return async () => {
    closing.abort()
    await Promise.all(listening)
  }
}

function actionsOf(
  { backend, decisions }: Core,
  name: string,
  channel: NoticeChannel,
): ChannelActions {
  const { mayApprove = isHarmless } = channel
  const find = async (person: Principal, approvalId: string): Promise<Approval | undefined> =>
    (await backend.get()).ledger.get(approvalId, toDecider(person))
  const read: ChannelActions['read'] = async (person, approvalId) => {
    const approval = await find(person, approvalId)
    return approval && readSummary((await backend.get()).refresh, approval)
  }
  /** Returns the digest of the preview as this person would see it, which the ledger compares. */
  const readOwnPreview = async (
    person: Principal,
    approvalId: string,
  ): Promise<string | undefined> => {
    const approval = await find(person, approvalId)
    const made = approval && (await (await backend.get()).refresh(approval, person.id)).preview
    return made?.state === 'made' ? made.preview.digest : undefined
  }
  return {
    now: async () => (await backend.get()).ledger.now(),
    read,
    decide: async (person, { account, approvalId, approved, reason, preview }) => {
      const approval = await read(person, approvalId)
      if (!approval) throw new ProtocolError('unknown-approval')
      if (approved && !mayApprove(approval))
        throw new ProtocolError('not-allowed', { message: ONLY_IN_PAGE })
      if (approved && preview !== undefined && preview !== approval.preview?.digest)
        throw new ProtocolError('preview-changed')
      const seen = preview === undefined ? undefined : await readOwnPreview(person, approvalId)
      const decision = { approvalId, approved, ...withoutUndefined({ reason, preview: seen }) }
      const via = { channel: name, account }
      await decisions.decideById(person, decision, () => ({ via }))
    },
  }
}

const ONLY_IN_PAGE = 'This call cannot be approved here. Open the page of the approval.'
