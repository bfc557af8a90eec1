import { z } from 'zod'

import type { TimelinePage } from '../../agent/timeline/build-timeline.ts'
import { buildTimeline } from '../../agent/timeline/build-timeline.ts'
import type { AuditRecord } from '../../approvals/audit-entry.ts'
import type { Decider } from '../../approvals/deciders.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { Timeline } from '../../protocol/timeline.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'
import type { TurnRegistry } from '../../turns/turn-registry.ts'
import type { LazyBackend } from '../chats/backend.ts'
import { toAppChat } from '../chats/backend.ts'
import { toDecider } from '../chats/decisions/decision-results.ts'
import type { ModelCalls } from '../chats/model-calls.ts'
import type { TurnsElsewhere } from '../chats/turns/turns-elsewhere.ts'
import type { Reply } from '../http/exchange.ts'
import { reply } from '../http/exchange.ts'
import type { AuthenticatedRequest, Route } from '../http/http-router.ts'
import type { MayReadAudit } from './audit-routes.ts'
import { checkMayReadAudit } from './audit-routes.ts'

/** The route of the timeline of a chat, for its owner and for operators. */
export function timelineRoutes(
  sources: TimelineSources,
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
    const timeline = await readTimeline(
      sources,
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

/** What a timeline is read from. */
export interface TimelineSources {
  readonly backend: LazyBackend
  readonly turns: TurnRegistry
  readonly elsewhere: Pick<TurnsElsewhere, 'messageOf'>
  readonly exposeState: (key: string) => boolean
  readonly modelCalls?: Pick<ModelCalls, 'annotate'> | undefined
}

interface TimelineRequest extends Partial<TimelinePage> {
  /** The person who reads. Undefined for the application. */
  readonly reader?: Decider
  /** Whether the reader sees the texts of messages and the session state. */
  readonly showText: boolean
}

const DEFAULT_TURNS = 20
/** Maximum number of approvals that a chat can wait for. The limit `maxPendingPerChat` is lower by default. */
const MAX_OPEN = 100

/** Returns a page of the timeline of a chat. A chat that does not exist has no entries. */
export async function readTimeline(
  { backend, turns, elsewhere, exposeState, modelCalls }: TimelineSources,
  ref: ChatRef,
  request: TimelineRequest,
): Promise<Timeline> {
  const opened = await backend.get()
  const { sessions, ledger, store, browserTools } = opened
  const chat = toAppChat(opened, ref)
  const { chatId } = chat
  const running = turns.running(ref)?.messageId ?? (await elsewhere.messageOf(ref))
  const session = await sessions.get(chat)
  const audit: AuditRecord[] = []
  for await (const record of ledger.audit({ chat })) audit.push(record)
  const open = await ledger.list({
    chat,
    states: ['requested', 'approved', 'executing'],
    limit: MAX_OPEN,
  })
  const calls = (await store.browserCalls.list?.({ chat, limit: MAX_OPEN })) ?? []
  const { reader, showText, before, limit = DEFAULT_TURNS } = request
  const timeline = buildTimeline(
    {
      chatId,
      now: await store.approvals.now(),
      events: session?.events ?? [],
      audit,
      open,
      running,
      browserCalls: new Set(calls.map(({ toolCallId }) => toolCallId)),
      isBrowserTool: (toolName) => browserTools.has(toolName),
      showText,
      reader,
    },
    { limit, ...(before !== undefined && { before }) },
  )
  if (!timeline)
    throw new ProtocolError('bad-request', { message: 'There is no page before this message.' })
  const state = Object.entries(session?.state ?? {}).filter(([key]) => exposeState(key))
  const entries =
    modelCalls && showText ? modelCalls.annotate(ref, timeline.entries) : timeline.entries
  return { ...timeline, entries, ...(showText && { state: Object.fromEntries(state) }) }
}
