import type { Session } from '@google/adk'

import { titleOf } from '../../agent/history/chat-title.ts'
import type { ApprovalChat } from '../../approvals/approval.ts'
import type { ChatSummary } from '../../protocol/chat-summary.ts'
import { ChatId } from '../../protocol/stream-request.ts'
import type { ChatEntry } from '../../store/chat-store.ts'
import { readsOpenings } from '../../store/store.ts'
import type { Backend } from '../chats/backend.ts'
import type { BridgeLimits } from '../options.ts'

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
