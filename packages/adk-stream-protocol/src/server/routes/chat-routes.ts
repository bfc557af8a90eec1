import type { BaseArtifactService } from '@google/adk'
import type { Part } from '@google/genai'

import { ProtocolError } from '../../protocol/errors.ts'
import type { ChatEvent } from '../../protocol/server-views.ts'
import { readStreamRequest } from '../../protocol/stream-request.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'
import type { ChatEvents } from '../../turns/chat-events.ts'
import type { TurnRegistry } from '../../turns/turn-registry.ts'
import type { AskingTurns } from '../chats/turns/asking-turns.ts'
import type { LazyBackend } from '../chats/backend.ts'
import { toApprovalChat } from '../chats/backend.ts'
import type { ChatService } from '../chats/chat-service.ts'
import type { TurnsElsewhere } from '../chats/turns/turns-elsewhere.ts'
import type { LiveRuns } from '../chats/live-runs.ts'
import type { Feeds } from '../feeds/feeds.ts'
import type { Exchange, FileReply, Reply } from '../http/exchange.ts'
import { reply } from '../http/exchange.ts'
import type { AuthenticatedRequest, Route } from '../http/http-router.ts'
import { readAgent, readDialect, readJson } from '../http/read-request.ts'
import type { BridgeLimits } from '../limits.ts'

export interface ChatRoutesOptions {
  readonly backend: LazyBackend
  readonly turns: TurnRegistry
  readonly elsewhere: Pick<TurnsElsewhere, 'messageOf'>
  readonly asking: Pick<AskingTurns, 'questionOf'> | undefined
  readonly events: ChatEvents
  readonly feeds: Feeds
  readonly chats: ChatService
  /** The live sessions. Undefined without the option `live`. */
  readonly runs: Pick<LiveRuns, 'leave' | 'find'> | undefined
  readonly limits: BridgeLimits
  readonly artifactService: BaseArtifactService | undefined
  readonly exposeState: (key: string) => boolean
}

/** The routes of one chat: send, resume, read, watch, stop, delete, and read artifacts. */
export function chatRoutes(options: ChatRoutesOptions): readonly Route[] {
  const { backend, turns, elsewhere, events, feeds, chats, runs, limits } = options
  const { artifactService, exposeState, asking } = options

  const stream = async ({ principal, exchange }: AuthenticatedRequest): Promise<Reply> => {
    const request = readStreamRequest(await readJson(exchange, limits), limits)
    const dialect = readDialect(exchange, request.dialect)
    const opened = await chats.send(principal, { ...request, ...readAgent(exchange) })
    return { type: 'turn', ...opened, dialect, headers: {} }
  }

  const resume = async (request: AuthenticatedRequest): Promise<Reply> => {
    const turn = await chats.resume(chatOf(request))
    if (!turn) return reply(204)
    const dialect = readDialect(request.exchange)
    return { type: 'turn', turn, from: 'start', dialect, headers: {} }
  }

  const messages = async (request: AuthenticatedRequest): Promise<Reply> => {
    const chat = chatOf(request)
    const opened = await backend.get()
    // Read before the conversation: a question that ends meanwhile is shown as open, and the next turn shows its end.
    const question = await asking?.questionOf(chat)
    const running = turns.running(chat)?.messageId ?? (await elsewhere.messageOf(chat))
    const stored = await opened.sessions.readMessages(toApprovalChat(opened, chat), {
      exposeState,
      unfinished: running,
      hasRunningCalls: (messageId) =>
        messageId === question?.messageId || runs?.find(chat)?.hasRunningCalls(messageId) === true,
    })
    return reply(200, {
      chatId: chat.chatId,
      messages: stored ?? [],
      running: running !== undefined,
    })
  }

  const watch = async (request: AuthenticatedRequest): Promise<Reply> => {
    const chat = chatOf(request)
    // The feed reports decisions of other servers from the current end of the audit record.
    await backend.get()
    const feed = feeds.open<ChatEvent>(request, (_reader, listener) =>
      events.watchChat(chat, listener),
    )
    return { type: 'feed', feed, headers: {} }
  }

  const artifact = async ({
    principal,
    id,
    name,
    exchange,
  }: AuthenticatedRequest): Promise<Reply> => {
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

  const stop = async (request: AuthenticatedRequest): Promise<Reply> => {
    await chats.stop(chatOf(request))
    return reply(204)
  }

  const remove = async (request: AuthenticatedRequest): Promise<Reply> => {
    const opened = await backend.get()
    await runs?.leave(chatOf(request))
    await chats.stop(chatOf(request))
    const chat = toApprovalChat(opened, chatOf(request))
    const cancelled = await opened.ledger.deleteChat(chat, 'the chat was deleted')
    await opened.host.cancelRemoteTasks(chat, cancelled)
    await opened.browserCalls.dropChat(chat)
    await opened.sessions.delete(chat)
    events.chatChanged(chat)
    return reply(204)
  }

  return [
    { method: 'POST', path: '/stream', handle: stream },
    { method: 'GET', path: '/stream/:id/stream', handle: resume },
    { method: 'GET', path: '/chats/:id/messages', handle: messages },
    { method: 'GET', path: '/chats/:id/events', handle: watch },
    { method: 'GET', path: '/chats/:id/artifacts/:name', handle: artifact },
    { method: 'POST', path: '/chats/:id/stop', handle: stop },
    { method: 'DELETE', path: '/chats/:id', handle: remove },
  ]
}

function chatOf({ principal, id }: AuthenticatedRequest): ChatRef {
  return { principalId: principal.id, chatId: id }
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
