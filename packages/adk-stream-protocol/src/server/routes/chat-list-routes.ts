import type { Session } from '@google/adk'
import { z } from 'zod'

import { createTitle, toLine } from '../../agent/history/chat-title.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { ChatSummary, FeedEvent } from '../../protocol/server-views.ts'
import { ChatId } from '../../protocol/stream-request.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'
import type { ChatEntry } from '../../store/chat-store.ts'
import { canReadFirstMessage } from '../../store/store.ts'
import type { ChatEvents } from '../../turns/chat-events.ts'
import type { TurnRegistry } from '../../turns/turn-registry.ts'
import type { Backend, LazyBackend } from '../chats/backend.ts'
import { toApprovalChat } from '../chats/backend.ts'
import type { Feeds } from '../feeds/feeds.ts'
import type { Reply } from '../http/exchange.ts'
import { reply } from '../http/exchange.ts'
import type { AuthenticatedRequest, Route } from '../http/http-router.ts'
import { readJson } from '../http/read-request.ts'
import type { BridgeLimits } from '../limits.ts'

export interface ChatListRoutesOptions {
  readonly backend: LazyBackend
  readonly turns: TurnRegistry
  readonly events: ChatEvents
  readonly feeds: Feeds
  readonly limits: BridgeLimits
}

/** The routes of a principal's chat list: read it, rename a chat, and watch for changes. */
export function chatListRoutes(options: ChatListRoutesOptions): readonly Route[] {
  const { backend, turns, events, feeds, limits } = options

  const list = async ({ principal: { id: principalId } }: AuthenticatedRequest): Promise<Reply> => {
    const chats = await listChats(await backend.get(), principalId, {
      limits,
      isRunning: (chatId) => turns.running({ principalId, chatId }) !== undefined,
    })
    return reply(200, { chats })
  }

  const rename = async ({
    principal,
    id: chatId,
    exchange,
  }: AuthenticatedRequest): Promise<Reply> => {
    const body = ChatChange.safeParse(await readJson(exchange, limits))
    const title = toLine(body.data?.title ?? '')
    if (title === '') throw new ProtocolError('bad-request', { message: BAD_BODY })
    const opened = await backend.get()
    const chat = toApprovalChat(opened, { principalId: principal.id, chatId })
    if (!(await opened.sessions.exists(chat))) throw new ProtocolError('unknown-chat')
    await opened.chats.rename(chat, title)
    events.chatChanged(chat)
    return reply(204)
  }

  const watch = async (request: AuthenticatedRequest): Promise<Reply> => {
    // The feed reports decisions of other servers from the current end of the audit record.
    await backend.get()
    const feed = feeds.open<FeedEvent>(request, (reader, listener) =>
      events.watchLists(reader, listener),
    )
    return { type: 'feed', feed, headers: {} }
  }

  return [
    { method: 'GET', path: '/chats', handle: list },
    { method: 'PATCH', path: '/chats/:id', handle: rename },
    { method: 'GET', path: '/events', handle: watch },
  ]
}

/** The body of `PATCH /chats/:chatId`. */
const ChatChange = z.strictObject({ title: z.string().trim().min(1).max(200) })

const BAD_BODY = 'Send { "title": 1 to 200 characters }.'

/** The maximum number of chats in a list. */
const MAX_CHATS = 200
const MAX_WHOLE_READS = 20

interface ListChatsOptions {
  readonly limits: BridgeLimits
  /** Whether a turn of the chat runs in this process. */
  readonly isRunning: (chatId: string) => boolean
}

/** Lists the newest chats of a principal. Reads the first message only of chats whose title is not recorded yet. */
async function listChats(
  backend: Backend,
  principalId: string,
  { limits, isRunning }: ListChatsOptions,
): Promise<ChatSummary[]> {
  const { sessions, ledger, chats, appName, agents } = backend
  const newest = await newestSessions(backend, principalId)
  const ids = newest.map(({ id }) => id)
  const known = await chats.find({ appName, principalId }, ids)
  const elsewhere = new Set(await ledger.locks.listLockedByOthers(principalId))
  const pending = await countPending(backend, principalId, limits)
  // A session service that can only read whole sessions reads few per request. The next lists read the others.
  let reads = canReadFirstMessage(sessions.service) ? MAX_CHATS : MAX_WHOLE_READS
  const summaries: ChatSummary[] = []
  for (const { id, lastUpdateTime } of newest) {
    let entry = known.get(id) ?? {}
    if (entry.createdAt === undefined && reads-- > 0)
      entry = { ...entry, ...(await recordOpening(backend, { appName, principalId, chatId: id })) }
    const running = isRunning(id) || elsewhere.has(id)
    summaries.push({
      ...describe(id, lastUpdateTime, entry),
      ...agents.describe(entry),
      running,
      pending: pending.get(id) ?? 0,
    })
  }
  return summaries
}

// Another program may have written a session whose id does not fit into a URL of the bridge.
async function newestSessions(
  { sessions, appName }: Backend,
  principalId: string,
): Promise<Session[]> {
  const request = { appName, userId: principalId, order: 'desc', limit: MAX_CHATS } as const
  const listed = await sessions.service.listSessions(request)
  return listed.sessions
    .filter(({ id }) => ChatId.safeParse(id).success)
    .toSorted((one, other) => other.lastUpdateTime - one.lastUpdateTime)
    .slice(0, MAX_CHATS)
}

async function countPending(
  { ledger }: Backend,
  principalId: string,
  { maxPendingPerPrincipal: limit }: BridgeLimits,
): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  for (const { chat } of await ledger.list({ principalId, states: ['requested'], limit }))
    counts.set(chat.chatId, (counts.get(chat.chatId) ?? 0) + 1)
  return counts
}

/** Records the title and the creation time of a chat. Records nothing if its first message gives no title yet. */
async function recordOpening({ sessions, chats }: Backend, chat: AppChatRef): Promise<ChatEntry> {
  const opening = await sessions.findOpening(chat)
  if (!opening?.content) return {}
  const note = { title: createTitle(opening.content), createdAt: opening.timestamp }
  if (note.title !== '') await chats.note(chat, note)
  return note
}

function describe(
  id: string,
  updatedAt: number,
  { name, title = '', createdAt = updatedAt }: ChatEntry,
): Omit<ChatSummary, 'running' | 'pending'> {
  return { id, title: name ?? title, createdAt, updatedAt }
}
