import { z } from 'zod'

import type { TimelinePage } from '../../agent/timeline/build-timeline.ts'
import { buildTimeline } from '../../agent/timeline/build-timeline.ts'
import type { AuditRecord } from '../../approvals/audit-entry.ts'
import type { Decider } from '../../approvals/deciders.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { Timeline } from '../../protocol/timeline.ts'
import { collect } from '../../shared/async.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'
import type { TurnRegistry } from '../../turns/turn-registry.ts'
import type { Principal } from '../auth/authenticate.ts'
import type { LazyBackend } from '../chats/backend.ts'
import { toAppChat } from '../chats/backend.ts'
import { toDecider } from '../chats/decisions/decision-results.ts'
import type { ModelCalls } from '../chats/model-calls.ts'
import type { Reply } from '../http/exchange.ts'
import { checkInput, reply } from '../http/exchange.ts'
import type { AuthenticatedRequest, Route } from '../http/http-router.ts'

/** What a timeline is read from. */
export interface TimelineSources {
  readonly backend: LazyBackend
  readonly turns: TurnRegistry
  readonly exposeState: (key: string) => boolean
  readonly modelCalls: ModelCalls | undefined
}

/**
 * The routes that show what happened: the audit record for operators, the timeline of a chat for its owner and for operators, and the
 * recorded model calls of a chat for its owner.
 */
export function auditAndTimelineRoutes(
  sources: TimelineSources & { readonly mayReadAudit?: MayReadAudit },
): readonly Route[] {
  const { backend, modelCalls, mayReadAudit } = sources

  const listAudit = async ({ principal, exchange }: AuthenticatedRequest): Promise<Reply> => {
    await checkMayReadAudit(principal, mayReadAudit)
    const { entries, ...page } = await readAudit(backend, readAuditQuery(exchange.url))
    return reply(200, { entries: entries.map(hideToolError), ...page })
  }

  const showTimeline = async (request: AuthenticatedRequest): Promise<Reply> => {
    const { principal, id: chatId, exchange } = request
    const query = Object.fromEntries(exchange.url.searchParams)
    const asked = checkInput(TimelineQuery, query, BAD_TIMELINE_QUERY)
    const { principalId = principal.id, ...page } = asked
    const isOwner = principalId === principal.id
    if (!isOwner) await checkMayReadAudit(principal, mayReadAudit)
    // Operators read calls and approvals, as in the audit record, but not what was said.
    const how = { ...page, reader: toDecider(principal), showText: isOwner }
    return reply(200, await readTimeline(sources, { principalId, chatId }, how))
  }

  const routes: Route[] = [
    { method: 'GET', path: '/audit', handle: listAudit },
    { method: 'GET', path: '/chats/:id/timeline', handle: showTimeline },
  ]
  if (modelCalls)
    routes.push({
      method: 'GET',
      path: '/chats/:id/model-calls/:name',
      handle: async ({ principal, id: chatId, name }) => {
        const call = modelCalls.find({ principalId: principal.id, chatId }, name)
        if (!call) throw new ProtocolError('not-found')
        return reply(200, call)
      },
    })
  return routes
}

/** Selects the audit entries that `bridge.audit()` returns: those that meet all given conditions. */
export interface AuditQuery {
  /** Entries of one chat. */
  readonly chat?: ChatRef
  /** Entries of one approval. */
  readonly approvalId?: string
  /** Entries at or after this time, in ms since 1970. */
  readonly from?: number
  /** Entries before this time, in ms since 1970. */
  readonly to?: number
  /** The `next` of the previous page. Default: the first page. */
  readonly after?: number
  /** Maximum number of entries. Default 100. */
  readonly limit?: number
}

/** A page of the audit record, from `bridge.audit()`. The oldest entry is the first. */
export interface AuditPage {
  readonly entries: readonly AuditRecord[]
  /** Pass it as `after` to read the next page. Undefined on the last page. */
  readonly next?: number
}

/** Returns a page of the audit record of the bridge's application. */
export async function readAudit(backend: LazyBackend, query: AuditQuery = {}): Promise<AuditPage> {
  const { chat, limit = MAX_PAGE, ...filter } = query
  const opened = await backend.get()
  // One extra entry shows whether there is a next page.
  const ofChat = chat && { chat: toAppChat(opened, chat) }
  const entries = await collect(opened.ledger.audit({ ...filter, ...ofChat, limit: limit + 1 }))
  const page = entries.slice(0, limit)
  const next = entries.length > limit ? page.at(-1)?.seq : undefined
  return { entries: page, ...(next !== undefined && { next }) }
}

/**
 * Returns true if a principal may read the audit record over HTTP.
 *
 * @inline
 */
export type MayReadAudit = (principal: Principal) => boolean | Promise<boolean>

/** Throws if a principal may not read the audit record. */
async function checkMayReadAudit(
  principal: Principal,
  mayReadAudit: MayReadAudit = () => false,
): Promise<void> {
  // A JavaScript function may return any value. Only `true` is a permission.
  const allowed: unknown = await mayReadAudit(principal)
  if (allowed !== true) throw new ProtocolError('not-allowed', { message: NOT_ALLOWED })
}

const NOT_ALLOWED =
  'You may not read the audit record. Ask the operator of this server for a role that may.'

/** ER3: no client receives the text of an exception. `bridge.audit()` returns it. */
function hideToolError(entry: AuditRecord): AuditRecord {
  if (entry.event.type !== 'failed' || 'output' in entry.event) return entry
  return { ...entry, event: { ...entry.event, error: 'The tool failed.' } }
}

const MAX_PAGE = 100

/** A time in ms since 1970, or a date such as `2026-11-16` or `2026-11-16T09:30:00Z`. */
const Time = z
  .string()
  .transform((text) => (/^\d+$/.test(text) ? Number(text) : Date.parse(text)))
  .pipe(z.number())

const Id = z.string().min(1).max(256)

const AuditQueryInput = z
  .strictObject({
    principalId: Id.exactOptional(),
    chatId: Id.exactOptional(),
    approvalId: Id.exactOptional(),
    from: Time.exactOptional(),
    to: Time.exactOptional(),
    after: z.coerce.number().int().min(0).exactOptional(),
    limit: z.coerce.number().int().min(1).max(MAX_PAGE).exactOptional(),
  })
  .refine(({ principalId, chatId }) => (principalId === undefined) === (chatId === undefined))

const BAD_AUDIT_QUERY = `\`principalId\` and \`chatId\` together name a chat, \`approvalId\` an approval. \`from\` and \`to\` are dates or ms since 1970, \`limit\` is a number from 1 to ${MAX_PAGE}, and \`after\` is the \`next\` of the previous page.`

function readAuditQuery({ searchParams }: URL): AuditQuery {
  const query = Object.fromEntries(searchParams)
  const { principalId, chatId, ...rest } = checkInput(AuditQueryInput, query, BAD_AUDIT_QUERY)
  const chat = principalId !== undefined && chatId !== undefined && { principalId, chatId }
  return { ...rest, ...(chat && { chat }) }
}

const MAX_TURNS = 100

const TimelineQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(MAX_TURNS).exactOptional(),
  before: Id.exactOptional(),
  principalId: Id.exactOptional(),
})

const BAD_TIMELINE_QUERY = `\`limit\` is a number of turns from 1 to ${MAX_TURNS}, \`before\` is the \`next\` of the previous page, and \`principalId\` is the owner of the chat.`

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
  { backend, turns, exposeState, modelCalls }: TimelineSources,
  ref: ChatRef,
  request: TimelineRequest,
): Promise<Timeline> {
  const opened = await backend.get()
  const { sessions, ledger, store, isPageTool, waitingCalls } = opened
  const chat = toAppChat(opened, ref)
  const { chatId } = chat
  const running = turns.running(ref)?.messageId ?? (await turns.others.messageOf(ref))
  const session = await sessions.get(chat)
  const audit = await collect(ledger.audit({ chat }))
  const open = await ledger.list({
    chat,
    states: ['requested', 'approved', 'executing'],
    limit: MAX_OPEN,
  })
  const handedOver = new Set(await waitingCalls.listHandedOver(opened, chat, MAX_OPEN))
  const { reader, showText, before, limit = DEFAULT_TURNS } = request
  const timeline = buildTimeline(
    {
      chatId,
      now: await store.approvals.now(),
      events: session?.events ?? [],
      audit,
      open,
      running,
      isClientCall: ({ toolCallId, toolName }) =>
        isPageTool(toolName) || handedOver.has(toolCallId),
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
