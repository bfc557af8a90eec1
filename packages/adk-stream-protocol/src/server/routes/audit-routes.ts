import { z } from 'zod'

import type { AuditRecord } from '../../approvals/audit-entry.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'
import type { Principal } from '../auth/authenticate.ts'
import type { LazyBackend } from '../chats/backend.ts'
import { toAppChat } from '../chats/backend.ts'
import type { Reply } from '../http/exchange.ts'
import { reply } from '../http/exchange.ts'
import type { AuthenticatedRequest, Route } from '../http/http-router.ts'

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
  const found = opened.ledger.audit({
    ...filter,
    ...(chat && { chat: toAppChat(opened, chat) }),
    limit: limit + 1,
  })
  const entries: AuditRecord[] = []
  for await (const entry of found) entries.push(entry)
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

/** The route of the audit record, for operators. */
export function auditRoutes(backend: LazyBackend, mayReadAudit?: MayReadAudit): readonly Route[] {
  const list = async ({ principal, exchange }: AuthenticatedRequest): Promise<Reply> => {
    await checkMayReadAudit(principal, mayReadAudit)
    const { entries, ...page } = await readAudit(backend, readQuery(exchange.url))
    return reply(200, { entries: entries.map(hideToolError), ...page })
  }
  return [{ method: 'GET', path: '/audit', handle: list }]
}

/** Throws if a principal may not read the audit record. */
export async function checkMayReadAudit(
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

const Query = z
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

const BAD_QUERY = `\`principalId\` and \`chatId\` together name a chat, \`approvalId\` an approval. \`from\` and \`to\` are dates or ms since 1970, \`limit\` is a number from 1 to ${MAX_PAGE}, and \`after\` is the \`next\` of the previous page.`

function readQuery({ searchParams }: URL): AuditQuery {
  const parsed = Query.safeParse(Object.fromEntries(searchParams))
  if (!parsed.success) throw new ProtocolError('bad-request', { message: BAD_QUERY })
  const { principalId, chatId, ...query } = parsed.data
  const chat = principalId !== undefined && chatId !== undefined && { principalId, chatId }
  return { ...query, ...(chat && { chat }) }
}
