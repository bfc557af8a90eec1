import type { BaseArtifactService, Session } from '@google/adk'
import type { Part } from '@google/genai'
import { z } from 'zod'

import { createTitle, toLine } from '../../agent/user-message.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { MESSAGE_HEADER } from '../../protocol/sse.ts'
import type { ChatEvent, ChatSummary, FeedEvent } from '../../protocol/server-views.ts'
import { ChatId, readStreamRequest } from '../../protocol/stream-request.ts'
import type { AppChatRef, ChatRef } from '../../shared/chat-ref.ts'
import type { ChatEntry } from '../../store/store.ts'
import { canReadFirstMessage } from '../../store/store.ts'
import type { ChatEvents } from '../../turns/chat-events.ts'
import type { TurnRegistry } from '../../turns/turn-registry.ts'
import type { Backend, LazyBackend } from '../chats/backend.ts'
import { toAppChat } from '../chats/backend.ts'
import type { ChatService } from '../chats/chat-service.ts'
import { showDecisions } from '../chats/decisions/show-decisions.ts'
import type { ChatRuns } from '../chats/chat-runs.ts'
import { findOpenQuestion } from '../chats/turns/question-answers.ts'
import type { Feeds } from '../feeds/feeds.ts'
import type { StoredNews } from '../feeds/stored-news.ts'
import type { Exchange, FileReply, FindFormat, Reply } from '../http/exchange.ts'
import { checkInput, readAgent, readJson, readPositions, reply } from '../http/exchange.ts'
import type { AuthenticatedRequest, Route } from '../http/http-router.ts'
import type { BridgeLimits } from '../settings/limits.ts'

interface ChatRoutesOptions {
  readonly backend: LazyBackend
  readonly turns: TurnRegistry
  readonly events: ChatEvents
  readonly feeds: Feeds
  readonly storedNews: Pick<StoredNews, 'follow'>
  readonly chats: ChatService
  readonly runs: Pick<ChatRuns, 'leave' | 'whileNone' | 'hasRunningCalls'>
  readonly limits: BridgeLimits
  readonly findFormat: FindFormat
  readonly artifactService: BaseArtifactService | undefined
  readonly exposeState: (key: string) => boolean
}

/** The routes of one chat: send, resume, read, watch, stop, delete, and read artifacts. */
export function chatRoutes(options: ChatRoutesOptions): readonly Route[] {
  const { backend, turns, events, feeds, storedNews, chats, runs, limits } = options
  const { exposeState, findFormat } = options

  const stream = async ({ principal, exchange }: AuthenticatedRequest): Promise<Reply> => {
    const request = readStreamRequest(await readJson(exchange, limits), limits)
    const format = findFormat(exchange, request.format)
    const opened = await chats.send(principal, { ...request, ...readAgent(exchange) })
    return { type: 'turn', ...opened, format, positions: request.positions, headers: {} }
  }

  const resume = async (request: AuthenticatedRequest): Promise<Reply> => {
    const { exchange } = request
    const format = findFormat(exchange)
    const { after, positions } = readPositions(exchange)
    const opened = await chats.resume(chatOf(request), format.hasPositions ? after : undefined)
    if (!opened) return reply(204)
    const headers = { [MESSAGE_HEADER]: encodeURIComponent(opened.turn.messageId) }
    return { type: 'turn', ...opened, format, positions, headers }
  }

  const messages = async (request: AuthenticatedRequest): Promise<Reply> => {
    const chat = chatOf(request)
    const after = readPosition(request.exchange)
    const opened = await backend.get()
    // Read before the conversation: a question that ends meanwhile is shown as open, and the next turn shows its end.
    const question = await findOpenQuestion(backend, chat)
    const running = await chats.findRunning(chat)
    const stored = await opened.sessions.readConversation(toAppChat(opened, chat), {
      exposeState,
      unfinished: running?.messageId,
      after,
      hasRunningCalls: (messageId) =>
        messageId === question?.messageId || runs.hasRunningCalls(chat, messageId),
    })
    await showDecisions(opened, toAppChat(opened, chat), stored.messages)
    return reply(200, { chatId: chat.chatId, ...stored, running: running !== undefined })
  }

  const watch = async (request: AuthenticatedRequest): Promise<Reply> => {
    const chat = chatOf(request)
    // The feed reports decisions of other servers from the current end of the audit record.
    await backend.get()
    const feed = feeds.open<ChatEvent>(request, (_reader, listener) =>
      events.watchChat(chat, listener),
    )
    await storedNews.follow(chat.principalId)
    return { type: 'feed', feed, headers: {} }
  }

  const takeOutput = async (request: AuthenticatedRequest): Promise<Reply> => {
    const { principal, name: toolCallId, exchange } = request
    const result = checkInput(Output, await readJson(exchange, limits), BAD_OUTPUT)
    await chats.submitToolResult(principal, chatOf(request), { toolCallId, result })
    return reply(204)
  }

  const stop = async (request: AuthenticatedRequest): Promise<Reply> => {
    const messageId = request.exchange.url.searchParams.get('messageId') ?? undefined
    await chats.stop(chatOf(request), messageId)
    return reply(204)
  }

  const remove = async (request: AuthenticatedRequest): Promise<Reply> => {
    const opened = await backend.get()
    const chat = toAppChat(opened, chatOf(request))
    const drop = async (): Promise<void> => {
      const cancelled = await opened.ledger.deleteChat(chat, 'the chat was deleted')
      await opened.waitingCalls.onCancelled(opened, chat, cancelled)
      await opened.waitingCalls.onChatDeleted(opened, chat)
      await opened.sessions.delete(chat)
    }
    do {
      await runs.leave(chat)
      await chats.stop(chat)
    } while (!(await runs.whileNone(chat, drop)))
    await turns.others.forget(chat)
    events.chatChanged(chat)
    return reply(204)
  }

  return [
    { method: 'POST', path: '/stream', handle: stream },
    { method: 'GET', path: '/stream/:id/stream', handle: resume },
    { method: 'GET', path: '/chats/:id/messages', handle: messages },
    { method: 'GET', path: '/chats/:id/events', handle: watch },
    { method: 'GET', path: '/chats/:id/artifacts/:name', handle: createArtifactReader(options) },
    { method: 'POST', path: '/chats/:id/outputs/:name', handle: takeOutput },
    { method: 'POST', path: '/chats/:id/stop', handle: stop, isServedWhileClosing: true },
    { method: 'DELETE', path: '/chats/:id', handle: remove },
  ]
}

function chatOf({ principal, id }: AuthenticatedRequest): ChatRef {
  return { principalId: principal.id, chatId: id }
}

/** The body of `POST /chats/:chatId/outputs/:toolCallId`. */
const Output = z.union([
  z.strictObject({ output: z.unknown().refine((output) => output !== undefined) }),
  z.strictObject({ errorText: z.string().max(10_000) }),
])

const BAD_OUTPUT = 'Send { "output": any JSON } or { "errorText": text }.'

/** The longest position that is read: event ids of other programs may be longer than those of ADK. */
const MAX_POSITION = 1_024

/** Reads `?after=`, the position up to which a client has the messages. */
function readPosition({ url }: Exchange): string | undefined {
  const after = url.searchParams.get('after') ?? undefined
  if (after !== undefined && after.length > MAX_POSITION)
    throw new ProtocolError('bad-request', { message: 'A position is shorter.' })
  return after
}

/** Returns the handler of the route that reads a file that the agent or a tool has saved. */
function createArtifactReader({
  backend,
  artifactService,
}: Pick<ChatRoutesOptions, 'backend' | 'artifactService'>) {
  return async ({ principal, id, name, exchange }: AuthenticatedRequest): Promise<Reply> => {
    const version = readVersion(exchange)
    if (!artifactService) throw new ProtocolError('unknown-artifact')
    const { appName } = await backend.get()
    const part = await artifactService.loadArtifact({
      appName,
      userId: principal.id,
      sessionId: id,
      filename: name,
      ...(version !== undefined && { version }),
    })
    return toArtifactReply(name, part)
  }
}

/** Reads `?version=`. Undefined means the newest version. */
function readVersion({ url }: Exchange): number | undefined {
  const version = url.searchParams.get('version')
  if (version === null) return undefined
  if (!/^\d{1,9}$/.test(version))
    throw new ProtocolError('bad-request', { message: 'A version is a whole number from 0.' })
  return Number(version)
}

/** Types that a browser displays without running code. Files of other types are offered as downloads. */
const INLINE_TYPES =
  /^(?:image\/(?:png|jpeg|gif|webp)|audio\/[\w.+-]+|video\/[\w.+-]+|text\/plain)$/

/**
 * Converts an artifact to a reply. An agent or a tool chose its type, so a type that could run as a page of this origin, such as HTML
 * or SVG, is sent as a download.
 */
function toArtifactReply(name: string, part: Part | undefined): FileReply {
  const { type, bytes } = readContent(part)
  const isInline = INLINE_TYPES.test(type)
  const inlineType = type === 'text/plain' ? 'text/plain; charset=utf-8' : type
  return {
    type: 'file',
    status: 200,
    bytes,
    headers: {
      'content-type': isInline ? inlineType : 'application/octet-stream',
      'content-disposition': `${isInline ? 'inline' : 'attachment'}; filename*=UTF-8''${encodeName(name)}`,
      'content-security-policy': "default-src 'none'; sandbox",
    },
  }
}

function readContent(part: Part | undefined): { type: string; bytes: Uint8Array } {
  if (part?.inlineData?.data !== undefined) {
    const type = (part.inlineData.mimeType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
    return { type, bytes: Buffer.from(part.inlineData.data, 'base64') }
  }
  if (part?.text !== undefined) return { type: 'text/plain', bytes: Buffer.from(part.text) }
  // The artifact does not exist, or it is only a link to a file elsewhere.
  throw new ProtocolError('unknown-artifact')
}

function encodeName(name: string): string {
  // RFC 5987 allows fewer characters than a URL.
  return encodeURIComponent(name.toWellFormed().replace(/^user:/, '')).replace(
    /['()*]/g,
    (mark) => `%${mark.codePointAt(0)?.toString(16).toUpperCase()}`,
  )
}

/** The routes of a principal's chat list: read it, rename a chat, and watch for changes. */
export function chatListRoutes({
  backend,
  turns,
  events,
  feeds,
  storedNews,
  limits,
}: Pick<
  ChatRoutesOptions,
  'backend' | 'turns' | 'events' | 'feeds' | 'storedNews' | 'limits'
>): readonly Route[] {
  const list = async ({ principal: { id: principalId } }: AuthenticatedRequest): Promise<Reply> => {
    const chats = await listChats(await backend.get(), principalId, {
      limits,
      isRunning: (chatId) => turns.running({ principalId, chatId }) !== undefined,
    })
    return reply(200, { chats })
  }

  const rename = async (request: AuthenticatedRequest): Promise<Reply> => {
    const { title } = checkInput(ChatChange, await readJson(request.exchange, limits), BAD_BODY)
    const opened = await backend.get()
    const chat = toAppChat(opened, chatOf(request))
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
    await storedNews.follow(request.principal.id)
    return { type: 'feed', feed, headers: {} }
  }

  return [
    { method: 'GET', path: '/chats', handle: list },
    { method: 'PATCH', path: '/chats/:id', handle: rename },
    { method: 'GET', path: '/events', handle: watch },
  ]
}

/** The body of `PATCH /chats/:chatId`. */
const ChatChange = z.strictObject({
  title: z.string().trim().max(200).transform(toLine).pipe(z.string().min(1)),
})

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
  const locked = new Set(await ledger.locks.listLockedByOthers(principalId))
  const pending = await countPending(backend, principalId, limits)
  // A session service that can only read whole sessions reads few per request. The next lists read the others.
  let reads = canReadFirstMessage(sessions.service) ? MAX_CHATS : MAX_WHOLE_READS
  const summaries: ChatSummary[] = []
  for (const { id, lastUpdateTime } of newest) {
    let entry = known.get(id) ?? {}
    if (entry.createdAt === undefined && reads-- > 0)
      entry = { ...entry, ...(await recordOpening(backend, { appName, principalId, chatId: id })) }
    const running = isRunning(id) || locked.has(id)
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
