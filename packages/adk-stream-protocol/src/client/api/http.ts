import { createParser, type EventSourceMessage } from 'eventsource-parser'

import {
  type ErrorBody,
  type ErrorCode,
  ERROR_CODES,
  PRINCIPAL_HEADER,
} from '../../protocol/error-codes.ts'
import type { Guard } from '../../protocol/guards.ts'
import { AdkError, parseJson, readErrorBody, disconnected } from '../adk-error.ts'
import type { Chunk } from '../../protocol/chunk.ts'
import { type PrincipalTag, createPrincipalTag } from '../connection/principal-tag.ts'
import { observeServerTime } from './server-clock.ts'
import { startSilenceTimeout } from './silence-timeout.ts'
import type { ChatPositions } from '../../protocol/sse.ts'

type HeaderRecord = Readonly<Record<string, string>>

/**
 * Where the bridge is, and how requests are sent to it.
 *
 * @inline
 */
export interface HttpOptions {
  /** The URL or path of the bridge, such as `/adk`. */
  readonly url: string
  /** Sent with every request. A function is called for each request, for tokens that change. */
  readonly headers?: HeaderRecord | (() => HeaderRecord | Promise<HeaderRecord>)
  /** Default `same-origin`. */
  readonly credentials?: RequestCredentials
  /** Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch
}

interface HttpRequest {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly body?: object
  readonly signal?: AbortSignal | undefined
  readonly headers?: HeadersInit | undefined
  /** The tag of the principal that decided. The server refuses the request if another one sends it (SE1120). */
  readonly decidedAs?: string | undefined
  /** Whether the bridge answers soon, and the request may be sent twice. Then silence counts as a lost connection. Default: a GET. */
  readonly isRepeatable?: boolean
}

/** Sends requests to the bridge. Throws an `AdkError` if the request is rejected, or if something else than the bridge responds. */
export interface Http {
  send(path: string, request?: HttpRequest): Promise<Response>
  read<Value>(path: string, isValid: Guard<Value>, request?: HttpRequest): Promise<Value>
  /** The tag of the principal of the last response. */
  readonly principal: PrincipalTag
}

export function createHttp(options: HttpOptions): Http {
  const { url, headers = {}, credentials = 'same-origin', fetch } = options
  const principal = createPrincipalTag()
  const send = async (path: string, request: HttpRequest): Promise<Response> => {
    const { method = 'GET', body, signal, headers: more, decidedAs } = request
    const own = typeof headers === 'function' ? await headers() : headers
    const json = body && { 'content-type': 'application/json' }
    const sentAt = Date.now()
    const response = await (fetch ?? globalThis.fetch)(`${url}${path}`, {
      method,
      credentials,
      headers: {
        ...json,
        ...own,
        ...(decidedAs !== undefined && { [PRINCIPAL_HEADER]: decidedAs }),
        ...Object.fromEntries(new Headers(more)),
      },
      ...(body && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    })
    observeServerTime(response, sentAt)
    principal.set(response.headers.get(PRINCIPAL_HEADER) ?? principal.current)
    if (!response.ok) throw await toError(response)
    return response
  }
  return {
    principal,
    send: (path, request) => limitTime(request, (limited) => send(path, limited)),
    read: (path, isValid, request) =>
      limitTime(request, async (limited) => {
        const response = await send(path, limited)
        const value = parseJson(await response.text())
        if (isValid(value)) return value
        throw new AdkError(
          'unavailable',
          'The response is not from the bridge. Check the `url` option.',
        )
      }),
  }
}

/** How long a GET, and another request that may be sent twice, may take, in ms. */
const ANSWER_MS = 60_000

/** Limits the time of requests that the bridge answers soon. Others may wait for the end of a turn or for a preview. */
async function limitTime<Value>(
  request: HttpRequest = {},
  run: (request: HttpRequest) => Promise<Value>,
): Promise<Value> {
  const { method = 'GET', signal, isRepeatable = method === 'GET' } = request
  if (!isRepeatable) return run(request)
  const silence = startSilenceTimeout(signal, ANSWER_MS)
  try {
    return await run({ ...request, signal: silence.signal })
  } finally {
    silence.stop()
  }
}

/** Statuses of a proxy that has no server behind it, as between two versions of the server. */
const GATEWAY_FAILURES: ReadonlySet<number> = new Set([502, 503, 504])

async function toError(response: Response): Promise<AdkError> {
  const error = readErrorBody(await response.text())
  // Otherwise a proxy responded, not the bridge.
  const { status } = response
  const message = `The server responded with status ${status}.`
  return (
    (error && toAdkError(error)) ??
    new AdkError('unavailable', message, GATEWAY_FAILURES.has(status) ? 1 : undefined)
  )
}

/** Returns an error of the bridge. Undefined if it has a code that the bridge does not use. */
export function toAdkError(error: ErrorBody['error']): AdkError | undefined {
  const { message, retryAfterSeconds, preview } = error
  const code = ERROR_CODES.find((each): each is ErrorCode => each === error.code)
  return code && new AdkError(code, message, retryAfterSeconds, preview)
}

/** A chunk with its position in the turn, see `TurnProgress`. */
interface PositionedChunk {
  readonly chunk: Chunk
  readonly entry: string | undefined
}

/**
 * Reads the chunks of a response. Returns the positions before and after the turn. Throws if the body ends before `[DONE]`, or if the server
 * falls silent.
 */
export async function* readSse(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<PositionedChunk, ChatPositions | undefined> {
  let positions: ChatPositions | undefined
  const silence = startSilenceTimeout(signal)
  const { signal: either, onComment } = silence
  try {
    for await (const events of readEvents(body, { signal: either, onComment })) {
      // The server is not silent while the chat processes what has arrived.
      silence.stop()
      for (const { data, id: entry, event } of events) {
        if (data === '[DONE]') return positions
        // Nothing is validated: the client trusts the server that it sends requests to.
        if (event === 'position') positions = JSON.parse(data) as ChatPositions
        else yield { chunk: JSON.parse(data) as Chunk, entry }
      }
      silence.restart()
    }
  } finally {
    silence.stop()
  }
  throw disconnected('the response broke off')
}

interface EventOptions {
  readonly signal?: AbortSignal | undefined
  /** Called with each comment, such as a keep-alive. */
  readonly onComment?: (comment: string) => void
}

/** Reads the events of a body, as many at a time as arrived together. */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  { signal, onComment }: EventOptions = {},
): AsyncGenerator<EventSourceMessage[], void> {
  const reader = body.getReader()
  const cancel = (): void => void reader.cancel().catch(() => undefined)
  signal?.addEventListener('abort', cancel, { once: true })
  const decoder = new TextDecoder()
  let events: EventSourceMessage[] = []
  const parser = createParser({
    onEvent: (event) => events.push(event),
    ...(onComment && { onComment }),
  })
  try {
    for (;;) {
      const { done, value } = await read(reader)
      if (done) return
      parser.feed(decoder.decode(value, { stream: true }))
      if (events.length === 0) continue
      const arrived = events
      events = []
      yield arrived
    }
  } finally {
    signal?.removeEventListener('abort', cancel)
    // Closes the connection if the body was not read to its end. An error of that is ignored.
    await reader.cancel().catch(() => undefined)
  }
}

async function read(reader: ReadableStreamDefaultReader<Uint8Array>) {
  try {
    return await reader.read()
  } catch (cause) {
    if (cause instanceof Error && cause.name === 'AbortError') throw cause
    throw disconnected('the connection was lost during the response', cause)
  }
}
