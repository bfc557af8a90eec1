import { randomUUID } from 'node:crypto'

import { ProtocolError } from '../protocol/errors.ts'
import { parseJson } from '../protocol/json.ts'
import type { StreamRequest } from '../protocol/stream-request.ts'
import { readStreamRequest } from '../protocol/stream-request.ts'
import { runTurn } from '../turns/run-turn.ts'
import type { Turn } from '../turns/turn.ts'
import type { ChatKey } from '../turns/turns.ts'
import { Turns } from '../turns/turns.ts'
import type { AgentHost } from './agent-host.ts'
import type { Exchange, Reply } from './exchange.ts'
import { reply } from './exchange.ts'
import type { BridgeLimits, BridgeOptions, Observers } from './options.ts'
import { isSessionScoped, toObservers } from './options.ts'
import type { Route } from './routes.ts'
import { traceTurn } from './trace-turn.ts'

/** What can be done with a chat over HTTP. */
export class ChatDesk {
  readonly #openHost: () => Promise<AgentHost>
  #opened: Promise<AgentHost> | undefined
  readonly #options: BridgeOptions
  readonly #limits: BridgeLimits
  readonly #turns: Turns
  readonly #observers: Observers

  constructor(openHost: () => Promise<AgentHost>, options: BridgeOptions, limits: BridgeLimits) {
    this.#openHost = openHost
    this.#options = options
    this.#limits = limits
    this.#observers = toObservers(options)
    this.#turns = new Turns({
      ...limits,
      disconnectGraceMs: options.disconnectGraceMs ?? 0,
      whileRunning: options.whileRunning ?? 'refuse',
    })
  }

  readonly routes: readonly Route[] = [
    {
      method: 'POST',
      path: '/stream',
      access: 'principal',
      handle: (...args) => this.#stream(...args),
    },
    {
      method: 'GET',
      path: '/stream/:chatId/stream',
      access: 'principal',
      handle: (chat) => this.#resume(chat),
    },
    {
      method: 'GET',
      path: '/chats/:chatId/messages',
      access: 'principal',
      handle: (chat) => this.#messages(chat),
    },
    {
      method: 'POST',
      path: '/chats/:chatId/stop',
      access: 'principal',
      handle: (chat) => this.#stop(chat),
    },
    {
      method: 'DELETE',
      path: '/chats/:chatId',
      access: 'principal',
      handle: (chat) => this.#delete(chat),
    },
  ]

  /** Stops all turns and takes no new ones. */
  async close(): Promise<void> {
    await this.#turns.close()
  }

  async #stream({ principalId }: ChatKey, exchange: Exchange): Promise<Reply> {
    requireJson(exchange.headers)
    const body = parseJson(await exchange.readBody(this.#limits.maxBodyBytes))
    const request = readStreamRequest(body, this.#limits)
    const host = await this.#host()
    if (request.replaces && !host.rewindable) throw new ProtocolError('not-rewindable')
    const chat = { principalId, chatId: request.chatId }
    const turn = await this.#turns.begin(chat, randomUUID(), (begun) =>
      this.#run(chat, request, begun),
    )
    return { type: 'turn', turn, headers: {} }
  }

  async #run(chat: ChatKey, request: StreamRequest, turn: Turn): Promise<void> {
    const { onChunk, onError } = this.#observers
    const info = { ...chat, messageId: turn.messageId }
    const marks = { messageId: turn.messageId, userMessageId: request.message.id ?? randomUUID() }
    try {
      const host = await this.#host()
      await traceTurn(info, async () => {
        const outcome = await runTurn(
          turn,
          host.run(chat, request, { marks, signal: turn.signal }),
          {
            exposeState: this.#exposeState,
            onChunk: onChunk && ((chunk) => onChunk(chunk, info)),
            onError,
          },
        )
        await host.settle(chat, outcome)
        return outcome
      })
    } catch (error) {
      // The answer is told; only the session could not be put in order, and the next turn tries again.
      onError(error)
    }
  }

  async #resume(chat: ChatKey): Promise<Reply> {
    const turn = this.#turns.running(chat)
    return turn?.log.replayable ? { type: 'turn', turn, headers: {} } : reply(204)
  }

  async #messages(chat: ChatKey): Promise<Reply> {
    const running = this.#turns.running(chat)
    const host = await this.#host()
    const messages = await host.messages(chat, {
      exposeState: this.#exposeState,
      unfinished: running?.messageId,
    })
    return reply(200, {
      chatId: chat.chatId,
      messages: messages ?? [],
      running: running !== undefined,
    })
  }

  async #stop(chat: ChatKey): Promise<Reply> {
    await this.#turns.stop(chat)
    return reply(204)
  }

  async #delete(chat: ChatKey): Promise<Reply> {
    await this.#turns.stop(chat)
    const host = await this.#host()
    await host.delete(chat)
    return reply(204)
  }

  // A database that could not be opened is tried again by the next request.
  async #host(): Promise<AgentHost> {
    this.#opened ??= this.#openHost()
    try {
      return await this.#opened
    } catch (error) {
      this.#opened = undefined
      throw error
    }
  }

  readonly #exposeState = (key: string): boolean =>
    (this.#options.exposeState ?? isSessionScoped)(key)
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
