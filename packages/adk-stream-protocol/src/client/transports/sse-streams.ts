import type { Chunk } from '../../protocol/chunk.ts'
import { AdkError, disconnected } from '../adk-error.ts'
import type { AdkChunkStream } from '../adk-ui-message.ts'
import type { Backoff } from '../../shared/backoff.ts'
import { delayBefore } from '../../shared/backoff.ts'
import { toChunkStream } from './chunk-stream.ts'
import type { ConnectionState } from './connection-state.ts'
import type { HttpRequest } from '../api/http.ts'
import type { FindObserver } from './chat-observers.ts'
import { readSse } from './read-sse.ts'
import { sleep } from '../../shared/backoff.ts'
import type { WireObserver, WireTap } from './wire-events.ts'

interface Parts {
  readonly resume: (chatId: string, request: HttpRequest) => Promise<Response>
  readonly stop: (chatId: string) => Promise<void>
  readonly keeperOf: FindObserver
  readonly report: (strand: object, state: ConnectionState | undefined) => void
  readonly backoff: Required<Backoff>
  readonly observe: WireObserver | undefined
}

/** One answer over HTTP. */
interface SseAnswer {
  readonly chatId: string
  /** The `Chat` that reads it, where somebody looks after that. */
  readonly chat: object | undefined
  readonly how: 'asked' | 'resumed'
  /** Ends its requests: the chat wants no more of it. */
  readonly signal: AbortSignal
  readonly leave: () => void
  readonly end: (error?: unknown) => void
  readonly tap: WireTap
}

interface Beginning {
  readonly tap: WireTap
  /** Aborts when the person presses stop, and when another resume takes the place of this one. */
  readonly signal: AbortSignal | undefined
}

/** The answers that are being read over HTTP, and what becomes of them when they are cut off or stopped. */
export class SseStreams {
  readonly #parts: Parts
  /** The newest answer of each chat. */
  readonly #newest = new Map<string, SseAnswer>()
  /** Responses that go on with an answer that was cut off, until their chat takes them. */
  readonly #revived = new Map<string, Response>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  begin(chatId: string, how: SseAnswer['how'], { tap, signal }: Beginning): SseAnswer {
    const { report } = this.#parts
    const leaving = new AbortController()
    const answer: SseAnswer = {
      chatId,
      chat: this.#parts.keeperOf(chatId)?.chat,
      how,
      tap,
      signal: leaving.signal,
      leave: () => leaving.abort(),
      end: (error) => {
        tap.end(error)
        report(answer, undefined)
        if (this.#newest.get(chatId) === answer) this.#newest.delete(chatId)
      },
    }
    this.#newest.set(chatId, answer)
    report(answer, { state: 'connecting' })
    signal?.addEventListener('abort', () => this.#stop(answer), { once: true })
    return answer
  }

  read(answer: SseAnswer, { body }: Response): AdkChunkStream {
    if (!body) throw disconnected('the answer has no body')
    const chunks = this.#chunks(answer, body)
    return toChunkStream(chunks, {
      keeper: () => this.#parts.keeperOf(answer.chatId, answer.chat),
      onCancel: () => answer.leave(),
      isOwn: answer.how === 'asked',
    })
  }

  /** The response that goes on with an answer that was cut off. */
  takeRevived(chatId: string): Response | undefined {
    const response = this.#revived.get(chatId)
    this.#revived.delete(chatId)
    return response
  }

  /** A connection that closes is a reader that leaves; a person who presses stop wants more. */
  #stop(answer: SseAnswer): void {
    const { chatId, how } = answer
    answer.leave()
    // A second `resumeStream()` aborts the first and asks at once; nobody pressed anything.
    queueMicrotask(() => {
      const newest = this.#newest.get(chatId)
      if (how === 'resumed' && newest !== undefined && newest !== answer) return
      // The answer is not shown any more, whatever becomes of the request.
      void this.#parts.stop(chatId).catch(() => undefined)
    })
  }

  async *#chunks(answer: SseAnswer, body: ReadableStream<Uint8Array>): AsyncGenerator<Chunk, void> {
    const { tap, signal } = answer
    let messageId: string | undefined
    this.#parts.report(answer, { state: 'open' })
    try {
      // The body of a response that another request asked for does not know this signal.
      for await (const chunk of readSse(body, signal)) {
        if (chunk.type === 'start') messageId = chunk.messageId
        tap.chunk(chunk)
        yield chunk
      }
      answer.end()
    } catch (error) {
      tap.end(error)
      if (!(await this.#heal(answer, messageId))) throw error
    } finally {
      answer.end()
    }
  }

  /** Asks for the rest of an answer that was cut off. True when the chat gets it: in another stream, or in its messages. */
  async #heal(answer: SseAnswer, messageId: string | undefined): Promise<boolean> {
    const { chatId, chat, signal } = answer
    const { keeperOf, report, backoff } = this.#parts
    for (let attempt = 0; attempt < backoff.attempts; attempt += 1) {
      // Who has nobody to look after them is told, and can resume.
      if (signal.aborted || !keeperOf(chatId, chat)) return false
      const pause = attempt === 0 ? 0 : delayBefore(attempt - 1, backoff)
      report(answer, { state: 'lost', attempt: attempt + 1, retryAt: Date.now() + pause })
      await sleep(pause, signal)
      const healed = await this.#goOn(answer, messageId)
      if (healed !== 'again') return healed === 'healed'
    }
    return false
  }

  async #goOn(
    { chatId, chat, signal }: SseAnswer,
    messageId: string | undefined,
  ): Promise<'healed' | 'over' | 'again'> {
    try {
      const response = await this.#parts.resume(chatId, { signal })
      const keeper = this.#parts.keeperOf(chatId, chat)
      if (response.status === 204) {
        const known = await keeper?.reload()
        return messageId !== undefined && known?.includes(messageId) === true ? 'healed' : 'over'
      }
      this.#revived.set(chatId, response)
      keeper?.onRevived()
      return 'healed'
    } catch (error) {
      const isRefused = error instanceof AdkError && error.code !== 'unavailable'
      return isRefused || signal.aborted ? 'over' : 'again'
    }
  }
}
