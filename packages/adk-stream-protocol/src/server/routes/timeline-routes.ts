import { z } from 'zod'

import { ProtocolError } from '../../protocol/errors.ts'
import { toDecider } from '../chats/decisions/decision-results.ts'
import type { ChatTimelines } from '../chats/chat-timelines.ts'
import type { ModelCalls } from '../chats/model-calls.ts'
import type { Reply } from '../http/exchange.ts'
import { reply } from '../http/exchange.ts'
import type { AuthenticatedRequest, Route } from '../http/http-router.ts'
import type { MayReadAudit } from './audit-routes.ts'
import { checkMayReadAudit } from './audit-routes.ts'

/** The route of the timeline of a chat, for its owner and for operators. */
export function timelineRoutes(
  timelines: ChatTimelines,
  mayReadAudit?: MayReadAudit,
): readonly Route[] {
  const show = async ({
    principal,
    id: chatId,
    exchange,
  }: AuthenticatedRequest): Promise<Reply> => {
    const { principalId = principal.id, ...page } = readQuery(exchange.url)
    const isOwner = principalId === principal.id
    if (!isOwner) await checkMayReadAudit(principal, mayReadAudit)
    const timeline = await timelines.read(
      { principalId, chatId },
      // Operators read calls and approvals, as in the audit record, but not what was said.
      { ...page, reader: toDecider(principal), showText: isOwner },
    )
    return reply(200, timeline)
  }
  return [{ method: 'GET', path: '/chats/:id/timeline', handle: show }]
}

/** The route of recorded model calls, for the owner of the chat. Without a recorder there is none. */
export function modelCallRoutes(modelCalls: ModelCalls | undefined): readonly Route[] {
  if (!modelCalls) return []
  return [
    {
      method: 'GET',
      path: '/chats/:id/model-calls/:name',
      handle: async ({ principal, id: chatId, name }) => {
        const call = modelCalls.find({ principalId: principal.id, chatId }, name)
        if (!call) throw new ProtocolError('not-found')
        return reply(200, call)
      },
    },
  ]
}

const MAX_TURNS = 100

const Query = z.strictObject({
  limit: z.coerce.number().int().min(1).max(MAX_TURNS).exactOptional(),
  before: z.string().min(1).max(256).exactOptional(),
  principalId: z.string().min(1).max(256).exactOptional(),
})

const BAD_QUERY = `\`limit\` is a number of turns from 1 to ${MAX_TURNS}, \`before\` is the \`next\` of the previous page, and \`principalId\` is the owner of the chat.`

function readQuery({ searchParams }: URL): z.infer<typeof Query> {
  const parsed = Query.safeParse(Object.fromEntries(searchParams))
  if (!parsed.success) throw new ProtocolError('bad-request', { message: BAD_QUERY })
  return parsed.data
}
