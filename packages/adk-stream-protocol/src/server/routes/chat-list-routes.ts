import type { Session } from '@google/adk'

import { titleOf, toLine } from '../../agent/history/chat-title.ts'
import type { ApprovalChat } from '../../approvals/approval.ts'
import { ChatChange } from '../../protocol/chat-change.ts'
import type { ChatSummary, PageEvent } from '../../protocol/chat-summary.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { ChatId } from '../../protocol/stream-request.ts'
import type { Backend, BackendOnDemand } from '../chats/backend.ts'
import { toApprovalChat } from '../chats/backend.ts'
import type { Feeds } from '../feeds/feeds.ts'
import type { Reply } from '../http/exchange.ts'
import { reply } from '../http/exchange.ts'
import type { Route, Visit } from '../http/route.ts'
import type { BridgeLimits } from '../options.ts'
import { readJson } from './chat-routes.ts'
import type { ChatEntry } from '../../store/chat-store.ts'
import { readsOpenings } from '../../store/store.ts'
import type { ListEvents } from '../../turns/list-events.ts'
import type { Turns } from '../../turns/turns.ts'

export interface ListDeskOptions {
  readonly backend: BackendOnDemand
  readonly turns: Turns
  readonly lists: ListEvents
  readonly feeds: Feeds
  readonly limits: BridgeLimits
}

/** What can be done with the list of a principal's chats. */
export class ListDesk {
  readonly #options: ListDeskOptions

  constructor(options: ListDeskOptions) {
    this.#options = options
  }

  readonly routes: readonly Route[] = [
    { method: 'GET', path: '/chats', handle: (visit) => this.#list(visit) },
    { method: 'PATCH', path: '/chats/:id', handle: (visit) => this.#rename(visit) },
    { method: 'GET', path: '/events', handle: (visit) => this.#watch(visit) },
  ]

  async #list({ principal: { id: principalId } }: Visit): Promise<Reply> {
    const { backend, turns, limits } = this.#options
    const chats = await listChats(await backend.get(), principalId, {
      limits,
      isRunning: (chatId) => turns.running({ principalId, chatId }) !== undefined,
    })
    return reply(200, { chats })
  }

  async #rename({ principal, id: chatId, exchange }: Visit): Promise<Reply> {
    const { backend, limits, lists } = this.#options
    const body = ChatChange.safeParse(await readJson(exchange, limits))
    const title = toLine(body.data?.title ?? '')
    if (title === '') throw new ProtocolError('bad-request', { message: BAD_BODY })
    const opened = await backend.get()
    const chat = toApprovalChat(opened, { principalId: principal.id, chatId })
    if (!(await renameChat(opened, chat, title))) throw new ProtocolError('unknown-chat')
    lists.chatChanged(chat)
    return reply(204)
  }

  async #watch(visit: Visit): Promise<Reply> {
    const { backend, lists, feeds } = this.#options
    // What other servers decide is told from where the record stands now.
    await backend.get()
    const feed = feeds.open<PageEvent>(visit, (reader, tell) => lists.watch(reader, tell))
    return { type: 'feed', feed, headers: {} }
  }
}

const BAD_BODY = 'Send { "title": 1 to 200 characters }.'

export interface ChatListOptions {
  readonly limits: BridgeLimits
  /** Whether this process writes an answer in a chat. */
  readonly isRunning: (chatId: string) => boolean
}

/** The newest chats of a principal. Their sessions are listed, and not read but for the begin of those not seen before. */
export async function listChats(
  backend: Backend,
  principalId: string,
  { limits, isRunning }: ChatListOptions,
): Promise<ChatSummary[]> {
  const { host, ledger, chats, appName, agents } = backend
  const sessions = await newestSessions(backend, principalId)
  const ids = sessions.map(({ id }) => id)
  const known = await chats.find({ appName, principalId }, ids)
  const elsewhere = new Set(await ledger.heldByOthers(principalId))
  const pending = await countPending(backend, principalId, limits)
  // A session service that reads whole sessions is not asked for many at once; the rest has its turn with the next list.
  let reads = readsOpenings(host.sessions) ? MAX_CHATS : MAX_WHOLE_READS
  const summaries: ChatSummary[] = []
  for (const { id, lastUpdateTime } of sessions) {
    let entry = known.get(id) ?? {}
    if (entry.createdAt === undefined && reads-- > 0)
      entry = { ...entry, ...(await noteBegin(backend, { appName, principalId, chatId: id })) }
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

/** Names a chat; says whether it exists. */
export async function renameChat(
  { host, chats }: Backend,
  chat: ApprovalChat,
  name: string,
): Promise<boolean> {
  if (!(await host.exists(chat))) return false
  await chats.rename(chat, name)
  return true
}

/** How many chats a list holds. */
const MAX_CHATS = 200
const MAX_WHOLE_READS = 20

// A session that another program wrote may have an id that no address of ours can hold.
async function newestSessions({ host, appName }: Backend, principalId: string): Promise<Session[]> {
  const request = { appName, userId: principalId, order: 'desc', limit: MAX_CHATS } as const
  const { sessions } = await host.sessions.listSessions(request)
  return sessions
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

async function noteBegin({ host, chats }: Backend, chat: ApprovalChat): Promise<ChatEntry> {
  const opening = await host.opening(chat)
  if (!opening?.content) return {}
  const note = { title: titleOf(opening.content), createdAt: opening.timestamp }
  // What gives no title now may give one later.
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
