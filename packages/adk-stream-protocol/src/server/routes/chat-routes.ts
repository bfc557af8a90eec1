import type { BaseArtifactService } from '@google/adk'
import type { Part } from '@google/genai'

import { ProtocolError } from '../../protocol/errors.ts'
import { parseJson } from '../../protocol/json.ts'
import type { ChatEvent } from '../../protocol/server-views.ts'
import { readStreamRequest } from '../../protocol/stream-request.ts'
import type { BackendOnDemand } from '../chats/backend.ts'
import { toApprovalChat } from '../chats/backend.ts'
import type { LiveRuns } from '../chats/live-runs.ts'
import type { TurnSource } from '../chats/turn-source.ts'
import type { Feeds } from '../feeds/feeds.ts'
import type { Dialect } from '../http/dialects.ts'
import { DIALECTS } from '../http/dialects.ts'
import type { Exchange, FileReply, Reply } from '../http/exchange.ts'
import { reply } from '../http/exchange.ts'
import type { Route, Visit } from '../http/route.ts'
import type { BridgeLimits } from '../options.ts'
import type { ChatEvents } from '../../turns/chat-events.ts'
import type { ListEvents } from '../../turns/list-events.ts'
import type { ChatKey, Turns } from '../../turns/turns.ts'

export interface ChatDeskOptions {
  readonly backend: BackendOnDemand
  readonly turns: Turns
  readonly events: ChatEvents
  readonly feeds: Feeds
  readonly lists: ListEvents
  readonly source: TurnSource
  /** What goes on in chats beside their turns, where there is such. */
  readonly runs: Pick<LiveRuns, 'leave' | 'find'> | undefined
  readonly limits: BridgeLimits
  readonly artifactService: BaseArtifactService | undefined
  readonly exposeState: (key: string) => boolean
}

/** What can be done with a chat over HTTP. */
export class ChatDesk {
  readonly #options: ChatDeskOptions

  constructor(options: ChatDeskOptions) {
    this.#options = options
  }

  readonly routes: readonly Route[] = [
    { method: 'POST', path: '/stream', handle: (visit) => this.#stream(visit) },
    { method: 'GET', path: '/stream/:id/stream', handle: (visit) => this.#resume(visit) },
    { method: 'GET', path: '/chats/:id/messages', handle: (visit) => this.#messages(visit) },
    { method: 'GET', path: '/chats/:id/events', handle: (visit) => this.#watch(visit) },
    {
      method: 'GET',
      path: '/chats/:id/artifacts/:name',
      handle: (visit) => this.#artifact(visit),
    },
    { method: 'POST', path: '/chats/:id/stop', handle: (visit) => this.#stop(visit) },
    { method: 'DELETE', path: '/chats/:id', handle: (visit) => this.#delete(visit) },
  ]

  async #stream(visit: Visit): Promise<Reply> {
    const { limits, source } = this.#options
    const request = readStreamRequest(await readJson(visit.exchange, limits), limits)
    const dialect = readDialect(visit.exchange, request.dialect)
    const addressed = readAgent(visit.exchange)
    const opened = await source.answer(visit.principal, { ...request, ...addressed })
    return { type: 'turn', ...opened, dialect, headers: {} }
  }

  async #resume(visit: Visit): Promise<Reply> {
    const turn = await this.#options.source.running(chatOf(visit))
    if (!turn) return reply(204)
    return { type: 'turn', turn, from: 'start', dialect: readDialect(visit.exchange), headers: {} }
  }

  async #messages(visit: Visit): Promise<Reply> {
    const { backend, turns, exposeState, runs } = this.#options
    const chat = chatOf(visit)
    const opened = await backend.get()
    const running = turns.running(chat)
    const messages = await opened.host.messages(toApprovalChat(opened, chat), {
      exposeState,
      unfinished: running?.messageId,
      runs: (messageId) => runs?.find(chat)?.runsCallsOf(messageId) === true,
    })
    return reply(200, {
      chatId: chat.chatId,
      messages: messages ?? [],
      running: running !== undefined,
    })
  }

  async #watch(visit: Visit): Promise<Reply> {
    const { backend, events, feeds } = this.#options
    const chat = chatOf(visit)
    // What other servers decide is told from where the record stands now.
    await backend.get()
    const feed = feeds.open<ChatEvent>(visit, (_reader, tell) => events.watch(chat, tell))
    return { type: 'feed', feed, headers: {} }
  }

  /** A file that the agent made for this chat, or for this person: its newest version, or the one that is asked for. */
  async #artifact(visit: Visit): Promise<Reply> {
    const { backend, artifactService } = this.#options
    const version = readVersion(visit.exchange)
    if (!artifactService) throw new ProtocolError('unknown-artifact')
    const { appName } = await backend.get()
    const part = await artifactService.loadArtifact({
      appName,
      userId: visit.principal.id,
      sessionId: visit.id,
      filename: visit.name,
      ...(version !== undefined && { version }),
    })
    return toArtifactReply(visit.name, part)
  }

  async #stop(visit: Visit): Promise<Reply> {
    await this.#options.turns.stop(chatOf(visit))
    return reply(204)
  }

  async #delete(visit: Visit): Promise<Reply> {
    const { backend, turns, runs, lists } = this.#options
    await runs?.leave(chatOf(visit))
    await turns.stop(chatOf(visit))
    const opened = await backend.get()
    const chat = toApprovalChat(opened, chatOf(visit))
    await opened.ledger.deleteChat(chat, 'the chat was deleted')
    await opened.browserCalls.dropChat(chat)
    await opened.host.delete(chat)
    lists.chatChanged(chat)
    return reply(204)
  }
}

/** The kind of client, by `?dialect=`, the header `x-adk-dialect` or the body's `dialect`. */
export function readDialect({ url, headers }: Exchange, inBody?: string): Dialect {
  const asked = url.searchParams.get('dialect') ?? headers.get('x-adk-dialect') ?? inBody ?? 'ui'
  const dialect = DIALECTS.find((known) => known === asked)
  if (!dialect) {
    throw new ProtocolError('bad-request', { message: `Dialects are ${DIALECTS.join(' and ')}.` })
  }
  return dialect
}

/** The agent that an address names for new chats, by `?agent=`. */
export function readAgent({ url }: Exchange): { readonly addressed?: string } {
  const addressed = url.searchParams.get('agent')
  return addressed === null ? {} : { addressed }
}

function readVersion({ url }: Exchange): number | undefined {
  const asked = url.searchParams.get('version')
  if (asked === null) return undefined
  if (!/^\d{1,9}$/.test(asked))
    throw new ProtocolError('bad-request', { message: 'A version is a whole number from 0.' })
  return Number(asked)
}

function chatOf({ principal, id }: Visit): ChatKey {
  return { principalId: principal.id, chatId: id }
}

/** The body of a request as JSON, within the limits. */
export async function readJson(
  exchange: Exchange,
  { maxBodyBytes }: BridgeLimits,
): Promise<unknown> {
  requireJson(exchange.headers)
  return parseJson(await exchange.readBody(maxBodyBytes))
}

// A form of a foreign page can post without a preflight, but not with this type.
function requireJson(headers: Headers): void {
  const type = headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase()
  if (type !== 'application/json') throw new ProtocolError('unsupported-media-type')
  const encoding = headers.get('content-encoding') ?? 'identity'
  if (encoding !== 'identity') {
    throw new ProtocolError('unsupported-media-type', {
      message: 'Send the body without compression.',
    })
  }
}

/** Types that a browser shows without running anything of theirs. All others are only saved. */
const SHOWN = /^(?:image\/(?:png|jpeg|gif|webp)|audio\/[\w.+-]+|video\/[\w.+-]+|text\/plain)$/

/**
 * An artifact as a reply. Its type was chosen by an agent or a tool: what could run as a page of this origin, such as HTML or SVG,
 * is sent as bytes to be saved.
 */
export function toArtifactReply(name: string, part: Part | undefined): FileReply {
  const { type, bytes } = readContent(part)
  const isShown = SHOWN.test(type)
  const shownType = type === 'text/plain' ? 'text/plain; charset=utf-8' : type
  return {
    type: 'file',
    status: 200,
    bytes,
    headers: {
      'content-type': isShown ? shownType : 'application/octet-stream',
      'content-disposition': `${isShown ? 'inline' : 'attachment'}; filename*=UTF-8''${encodeName(name)}`,
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
  // Nothing, or only the address of a file that is kept elsewhere.
  throw new ProtocolError('unknown-artifact')
}

function encodeName(name: string): string {
  // RFC 5987 leaves fewer characters as they are than a URL does.
  return encodeURIComponent(name.toWellFormed().replace(/^user:/, '')).replace(
    /['()*]/g,
    (mark) => `%${mark.codePointAt(0)?.toString(16).toUpperCase()}`,
  )
}
