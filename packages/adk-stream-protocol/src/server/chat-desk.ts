import { ProtocolError } from '../protocol/errors.ts'
import { parseJson } from '../protocol/json.ts'
import type { AnswersRequest } from '../protocol/stream-request.ts'
import { readStreamRequest } from '../protocol/stream-request.ts'
import type { ChatKey, Turns } from '../turns/turns.ts'
import type { ApprovalDesk } from './approval-desk.ts'
import type { BackendOnDemand } from './backend.ts'
import { toApprovalChat } from './backend.ts'
import type { Exchange, Reply } from './exchange.ts'
import { reply } from './exchange.ts'
import type { BridgeLimits } from './options.ts'
import type { Route, Visit } from './routes.ts'
import type { TurnDesk } from './turn-desk.ts'

export interface ChatDeskOptions {
  readonly backend: BackendOnDemand
  readonly turns: Turns
  readonly turnDesk: TurnDesk
  readonly approvalDesk: ApprovalDesk
  readonly limits: BridgeLimits
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
    { method: 'POST', path: '/chats/:id/stop', handle: (visit) => this.#stop(visit) },
    { method: 'DELETE', path: '/chats/:id', handle: (visit) => this.#delete(visit) },
  ]

  async #stream(visit: Visit): Promise<Reply> {
    const { limits, turnDesk } = this.#options
    const request = readStreamRequest(await readJson(visit.exchange, limits), limits)
    const chat = { principalId: visit.principal.id, chatId: request.chatId }
    if (request.type === 'answers') return this.#answer(visit, chat, request)
    const turn = await turnDesk.begin(chat, request)
    return { type: 'turn', turn, from: 'start', headers: {} }
  }

  async #answer(visit: Visit, chat: ChatKey, request: AnswersRequest): Promise<Reply> {
    const { approvalDesk, turnDesk } = this.#options
    const { messageId, seen } = await approvalDesk.decideAll(visit.principal, chat, request)
    const { outputs } = request
    const turn = await turnDesk.resume(chat, messageId, {
      outputs,
      ...(seen !== undefined && { seen }),
    })
    return { type: 'turn', turn, from: 'pause', headers: {} }
  }

  async #resume(visit: Visit): Promise<Reply> {
    const turn = this.#options.turns.running(chatOf(visit))
    return turn?.log.replayable ? { type: 'turn', turn, from: 'start', headers: {} } : reply(204)
  }

  async #messages(visit: Visit): Promise<Reply> {
    const { backend, turns, exposeState } = this.#options
    const chat = chatOf(visit)
    const running = turns.running(chat)
    const opened = await backend.get()
    const messages = await opened.host.messages(toApprovalChat(opened, chat), {
      exposeState,
      unfinished: running?.messageId,
    })
    return reply(200, {
      chatId: chat.chatId,
      messages: messages ?? [],
      running: running !== undefined,
    })
  }

  async #stop(visit: Visit): Promise<Reply> {
    await this.#options.turns.stop(chatOf(visit))
    return reply(204)
  }

  async #delete(visit: Visit): Promise<Reply> {
    const { backend, turns } = this.#options
    await turns.stop(chatOf(visit))
    const opened = await backend.get()
    const chat = toApprovalChat(opened, chatOf(visit))
    await opened.ledger.deleteChat(chat, 'the chat was deleted')
    await opened.host.delete(chat)
    return reply(204)
  }
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
