import type { Chunk } from '../../protocol/chunk.ts'
import type { Backoff } from '../../shared/backoff.ts'
import { delayBefore, sleep } from '../../shared/backoff.ts'
import { AdkError, disconnected } from '../adk-error.ts'
import type { AdkChunkStream } from '../adk-ui-message.ts'
import type { HttpRequest } from '../api/http.ts'
import type { FindObserver, StreamSource } from './chat-observers.ts'
import { toChunkStream } from './chunk-stream.ts'
import type { ConnectionState } from './connection-state.ts'
import { readSse } from './read-sse.ts'
import type { WireTap } from './wire-events.ts'

interface Dependencies {
  readonly resume: (chatId: string, request: HttpRequest) => Promise<Response>
  readonly stop: (chatId: string) => Promise<void>
  readonly findObserver: FindObserver
  readonly report: (request: object, state: ConnectionState | undefined) => void
  readonly backoff: Required<Backoff>
}

/** One stream over HTTP. */
interface SseStream {
  readonly chatId: string
  /** The `Chat` that reads the stream, if it is attached. */
  readonly chat: object | undefined
  readonly source: StreamSource
  /** Aborts the HTTP requests of the stream. */
  readonly signal: AbortSignal
  readonly close: () => void
  readonly end: (error?: unknown) => void
  readonly tap: WireTap | undefined
}

interface OpenOptions {
  readonly source: StreamSource
  readonly tap: WireTap | undefined
  /** Aborted by `stop()`, and by a second `resumeStream()`. */
  readonly signal: AbortSignal | undefined
}

/** The streams that are read over HTTP. Resumes a stream that is interrupted. */
export class SseStreams {
  readonly #dependencies: Dependencies
  /** The newest stream of each chat. */
  readonly #newest = new Map<string, SseStream>()
  /** Responses with the rest of an interrupted stream, until the chat reads them. */
  readonly #resumed = new Map<string, Response>()

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  open(chatId: string, { source, tap, signal }: OpenOptions): SseStream {
    const { report, findObserver } = this.#dependencies
    const closing = new AbortController()
    const stream: SseStream = {
      chatId,
      chat: findObserver(chatId)?.chat,
      source,
      tap,
      signal: closing.signal,
      close: () => closing.abort(),
      end: (error) => {
        tap?.end(error)
        report(stream, undefined)
        if (this.#newest.get(chatId) === stream) this.#newest.delete(chatId)
      },
    }
    this.#newest.set(chatId, stream)
    report(stream, { state: 'connecting' })
    signal?.addEventListener('abort', () => this.#stop(stream), { once: true })
    return stream
  }

  read(stream: SseStream, { body }: Response): AdkChunkStream {
    if (!body) throw disconnected('the response has no body')
    return toChunkStream(this.#chunks(stream, body), {
      observer: () => this.#dependencies.findObserver(stream.chatId, stream.chat),
      onCancel: () => stream.close(),
      source: stream.source,
    })
  }

  /** Returns the response with the rest of an interrupted stream, once. */
  takeResumed(chatId: string): Response | undefined {
    const response = this.#resumed.get(chatId)
    this.#resumed.delete(chatId)
    return response
  }

  /** Closing the connection only removes a reader from the turn. `stop()` must end the turn on the server. */
  #stop(stream: SseStream): void {
    const { chatId, source } = stream
    stream.close()
    // A second `resumeStream()` aborts the first one and sends its request right after. That is not a stop.
    queueMicrotask(() => {
      const newest = this.#newest.get(chatId)
      if (source === 'resumed' && newest !== undefined && newest !== stream) return
      // The chat does not show the reply any more, whether or not the request succeeds.
      void this.#dependencies.stop(chatId).catch(() => undefined)
    })
  }

  async *#chunks(stream: SseStream, body: ReadableStream<Uint8Array>): AsyncGenerator<Chunk, void> {
    const { tap, signal } = stream
    let messageId: string | undefined
    this.#dependencies.report(stream, { state: 'open' })
    try {
      // The request of a resumed response was sent with another signal.
      for await (const chunk of readSse(body, signal)) {
        if (chunk.type === 'start') messageId = chunk.messageId
        tap?.chunk(chunk)
        yield chunk
      }
    } catch (error) {
      tap?.end(error)
      if (!(await this.#recover(stream, messageId))) throw error
    } finally {
      stream.end()
    }
  }

  /** Requests the rest of an interrupted stream. Returns true if the chat gets it, in another stream or in its messages. */
  async #recover(stream: SseStream, messageId: string | undefined): Promise<boolean> {
    const { chatId, chat, signal } = stream
    const { findObserver, report, backoff } = this.#dependencies
    for (let attempt = 0; attempt < backoff.attempts; attempt += 1) {
      // A chat that is not attached gets the error, and can resume.
      if (signal.aborted || !findObserver(chatId, chat)) return false
      const delay = attempt === 0 ? 0 : delayBefore(attempt - 1, backoff)
      report(stream, { state: 'lost', attempt: attempt + 1, retryAt: Date.now() + delay })
      await sleep(delay, signal)
      const result = await this.#resume(stream, messageId)
      if (result !== 'retry') return result === 'recovered'
    }
    return false
  }

  async #resume(
    { chatId, chat, signal }: SseStream,
    messageId: string | undefined,
  ): Promise<'recovered' | 'failed' | 'retry'> {
    try {
      const response = await this.#dependencies.resume(chatId, { signal })
      const observer = this.#dependencies.findObserver(chatId, chat)
      if (response.status === 204) {
        const known = await observer?.reload()
        const isStored = messageId !== undefined && known?.includes(messageId) === true
        return isStored ? 'recovered' : 'failed'
      }
      this.#resumed.set(chatId, response)
      observer?.onStreamInterrupted()
      return 'recovered'
    } catch (error) {
      const isRejected = error instanceof AdkError && error.code !== 'unavailable'
      return isRejected || signal.aborted ? 'failed' : 'retry'
    }
  }
}
