import type { ChatTransport } from 'ai'

import type { ErrorCode } from '../protocol/errors.ts'
import type { Message } from '../protocol/message.ts'
import { AdkError, disconnected } from './adk-error.ts'
import type {
  AdkChunkStream,
  AdkUIMessage,
  ReconnectOptions,
  SendOptions,
} from './adk-ui-message.ts'
import type { AnswerChannel, DecisionSent } from './answer-channel.ts'
import { Answers, selectMessages } from './answers.ts'
import type { ChatKeeper } from './chat-keeper.ts'
import { toChunkStream } from './chunk-stream.ts'
import { readSse } from './read-sse.ts'

type Headers = Readonly<Record<string, string>>

/** Where the bridge is, and how it is asked. */
export interface SseTransportOptions {
  /** Where the bridge is mounted, such as `/adk`. */
  readonly url: string
  /** Sent with every request; a function is asked for each one, for tokens that change. */
  readonly headers?: Headers | (() => Headers | Promise<Headers>)
  /** Default `same-origin`. */
  readonly credentials?: RequestCredentials
  /** Default: the global one. */
  readonly fetch?: typeof globalThis.fetch
}

/** The transport of a chat over HTTP, for `useChat` of the AI SDK 6 and 7. */
export function sseTransport(options: SseTransportOptions): SseTransport {
  return new SseTransport(options)
}

/** A transport over HTTP; made by `sseTransport`. */
export class SseTransport implements ChatTransport<AdkUIMessage>, AnswerChannel {
  /** A stream that is resumed tells its message from the start. */
  readonly resumeStreamIsReplay = true
  readonly answers = new Answers()
  readonly #options: SseTransportOptions
  readonly #keepers = new Map<string, ChatKeeper>()

  constructor(options: SseTransportOptions) {
    this.#options = options
  }

  async sendMessages(options: SendOptions): Promise<AdkChunkStream> {
    const { chatId: id, trigger, messageId, abortSignal, headers, body } = options
    const { messages, answered } = selectMessages({ ...options, messageId, trigger }, this.answers)
    const edits = this.answers.editsOf(answered)
    const edited = Object.keys(edits).length > 0 && { edits }
    this.answers.mark(answered, 'travelling')
    abortSignal?.addEventListener('abort', () => void this.#stop(id), { once: true })
    try {
      const response = await this.#fetch('/stream', {
        method: 'POST',
        body: { ...body, id, trigger, messageId, messages, ...edited },
        signal: abortSignal,
        headers: toRecord(headers),
      })
      this.answers.mark(answered, 'taken')
      return this.#read(id, response)
    } catch (error) {
      this.answers.mark(answered, 'refused')
      if (answered.length > 0) this.#keepers.get(id)?.onRefused(answered, error)
      throw error
    }
  }

  async reconnectToStream(options: ReconnectOptions): Promise<AdkChunkStream | null> {
    const { chatId: id, headers, abortSignal: signal } = options
    const response = await this.#fetch(`/stream/${encodeURIComponent(id)}/stream`, {
      headers: toRecord(headers),
      signal,
    })
    return response.status === 204 ? null : this.#read(id, response)
  }

  /** Decides away from the chat's stream, as an inbox does; resolves with the state that the approval is in then. */
  async decide({
    approvalId,
    approved,
    reason,
    args,
  }: Omit<DecisionSent, 'chatId'>): Promise<string> {
    const response = await this.#fetch(`/approvals/${encodeURIComponent(approvalId)}`, {
      method: 'POST',
      body: { approved, reason, args },
    })
    // PROTOCOL.md §2.
    const { approval } = (await response.json()) as { approval: { state: string } }
    return approval.state
  }

  /** The conversation as the server has it. */
  async loadMessages(chatId: string): Promise<Message[]> {
    const response = await this.#fetch(`/chats/${encodeURIComponent(chatId)}/messages`)
    return ((await response.json()) as { messages: Message[] }).messages
  }

  /** An answer over HTTP ends where it waits: there is nothing to travel beside. */
  beside(): undefined {
    return undefined
  }

  keep(chatId: string, keeper: ChatKeeper): () => void {
    this.#keepers.set(chatId, keeper)
    // Another page's chat of the same id may have come since.
    return () => {
      if (this.#keepers.get(chatId) === keeper) this.#keepers.delete(chatId)
    }
  }

  #read(chatId: string, { body }: Response): AdkChunkStream {
    if (!body) throw disconnected('the answer has no body')
    const chunks = readSse(body)
    return toChunkStream(chunks, {
      keeper: () => this.#keepers.get(chatId),
      onCancel: async () => {
        await chunks.return()
      },
    })
  }

  /** A connection that closes is a reader that leaves; a person who presses stop wants more. */
  async #stop(chatId: string): Promise<void> {
    const address = `/chats/${encodeURIComponent(chatId)}/stop`
    // The answer is not shown any more, whatever becomes of the request.
    await this.#fetch(address, { method: 'POST' }).catch(() => undefined)
  }

  async #fetch(path: string, request: HttpRequest = {}): Promise<Response> {
    const { url, headers = {}, credentials = 'same-origin', fetch } = this.#options
    const { method = 'GET', body, signal, headers: more } = request
    const own = typeof headers === 'function' ? await headers() : headers
    const json = body && { 'content-type': 'application/json' }
    const response = await (fetch ?? globalThis.fetch)(`${url}${path}`, {
      method,
      credentials,
      headers: { ...json, ...own, ...more },
      ...(body && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    })
    if (!response.ok) throw await toError(response)
    return response
  }
}

interface HttpRequest {
  readonly method?: string
  readonly body?: object
  readonly signal?: AbortSignal | undefined
  readonly headers?: Headers
}

async function toError(response: Response): Promise<Error> {
  const text = await response.text()
  try {
    const { error } = JSON.parse(text) as {
      error: { code: ErrorCode; message: string; retryAfterSeconds?: number }
    }
    return new AdkError(error.code, error.message, error.retryAfterSeconds)
  } catch {
    // Not the bridge answered, but something before it.
    return new AdkError('unavailable', `The server answered with ${response.status}.`)
  }
}

function toRecord(headers: HeadersInit | undefined): Headers {
  return Object.fromEntries(new globalThis.Headers(headers))
}
