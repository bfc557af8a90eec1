import { setTimeout as delay } from 'node:timers/promises'

import type {
  GoogleGenAI,
  Live,
  LiveConnectConfig,
  LiveServerMessage,
  Session,
} from '@google/genai'

import { isKeyRejected, readRetryDelay } from '../../../agent/translate/model-outcome.ts'
import type { ErrorCode } from '../../../protocol/errors.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { Deferred } from '../../../shared/async.ts'
import { defer } from '../../../shared/async.ts'

/** One connection to Gemini whose setup is complete. */
export interface GeminiSocket {
  readonly session: Session
  /** Closes the connection. Resolves when it is closed, or after a second: Gemini rejects a resumption while it is open. */
  close(): Promise<void>
}

interface SocketEvents {
  readonly onMessage: (message: LiveServerMessage) => void
  /** The open connection ended. */
  readonly onClosed: (error: LiveConnectionError) => void
  /** A frame is not a valid message. */
  readonly onInvalidFrame: (error: LiveConnectionError) => void
}

interface SocketOptions {
  readonly client: GoogleGenAI
  readonly model: string
  readonly config: LiveConnectConfig
  /** Announces in the setup that a history comes first, to which the model does not reply. */
  readonly startsWithHistory: boolean
  readonly timeoutMs: number
  readonly signal: AbortSignal
  readonly events: SocketEvents
}

/** How long Gemini may take to acknowledge that a connection is closed. */
const CLOSE_MS = 1_000

/** Opens a connection. Rejects with a `LiveConnectionError`, and then leaves no socket open. */
export async function openGeminiSocket(options: SocketOptions): Promise<GeminiSocket> {
  const connection = new GeminiConnection(options)
  const { timeoutMs, signal } = options
  const timer = setTimeout(
    () => connection.fail('timeout', `No response within ${timeoutMs} ms.`),
    timeoutMs,
  )
  const abort = (): void => connection.fail('aborted', 'The live run has ended.')
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  try {
    return await connection.open(options)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}

/**
 * One connection and its setup. The SDK's `connect` never rejects when the socket fails (js-genai#1257), so this class takes the place of the
 * SDK's socket and passes everything on to it.
 */
class GeminiConnection implements GeminiSocket, RawSocket {
  readonly #client: GoogleGenAI
  readonly #events: SocketEvents
  readonly #startsWithHistory: boolean
  /** Rejects if the setup fails. Undefined when the connection is open. */
  #failed: Promise<never> | undefined
  /** Resolves when the connection is closed, if `close` waits for that. */
  #closed: Deferred<void> | undefined
  #isClosed = false
  #reject: (error: LiveConnectionError) => void = ignore
  #session: Session | undefined
  #socket: RawSocket | undefined
  #hasSentSetup = false
  #phase: LivePhase | 'failed' = 'setup'
  #socketError: unknown

  constructor({ client, events, startsWithHistory }: SocketOptions) {
    this.#client = client
    this.#events = events
    this.#startsWithHistory = startsWithHistory
    this.#failed = new Promise((_, reject) => {
      this.#reject = reject
    })
    // The setup may fail before `open` awaits the promise.
    this.#failed.catch(ignore)
  }

  async open(options: SocketOptions): Promise<GeminiSocket> {
    const connected = this.#openSession(options)
    this.#session = await (this.#failed ? Promise.race([this.#failed, connected]) : connected)
    this.#phase = 'open'
    // An open connection does not keep what only its setup needs.
    this.#failed = undefined
    this.#reject = ignore
    return this
  }

  get session(): Session {
    if (!this.#session) throw new TypeError('The connection is not open.')
    return this.#session
  }

  connect(): void {
    this.#socket?.connect()
  }

  send(text: string): void {
    const isSetup = !this.#hasSentSetup
    this.#hasSentSetup = true
    this.#socket?.send(isSetup && this.#startsWithHistory ? announceHistory(text) : text)
  }

  async close(): Promise<void> {
    void this.#socket?.close()
    if (this.#isClosed) return
    this.#closed ??= defer()
    await Promise.race([this.#closed.promise, delay(CLOSE_MS, undefined, { ref: false })])
  }

  fail(code: LiveFailureCode, reason: string, cause?: unknown): void {
    if (this.#phase !== 'setup') return
    this.#phase = 'failed'
    this.#reject(new LiveConnectionError({ code, reason, phase: 'setup', cause }))
    void this.#socket?.close()
  }

  async #openSession({ model, config }: SocketOptions): Promise<Session> {
    const client = this.#client
    const live = withSocketFactory(client.live, (factory, url, headers, callbacks) => {
      const { onmessage } = callbacks
      this.#socket = factory.create(url, headers, {
        ...callbacks,
        onmessage: (frame) => this.#onFrame(frame, onmessage),
      })
      // The setup failed while the SDK fetched credentials.
      if (this.#phase === 'failed') throw new TypeError('The setup has already failed.')
      return this
    })
    const callbacks = {
      // On Vertex AI the SDK renames fields. Elsewhere the frame itself is used.
      onmessage: client.vertexai ? this.#events.onMessage : ignore,
      onerror: (event: { readonly error?: unknown; readonly message?: string }) => {
        this.#socketError = event.error ?? event.message
      },
      onclose: (event: { readonly code: number; readonly reason: string }) => {
        this.#onClose(event.code, event.reason)
      },
    }
    try {
      return await live.connect({ model, config, callbacks })
    } catch (error) {
      this.fail('misconfigured', describeError(error), error)
      // `open` has received the failure before.
      throw error
    }
  }

  #onFrame(frame: RawFrame, pass: (frame: RawFrame) => void): void {
    if (this.#phase === 'failed') return
    const client = this.#client
    const events = this.#events
    let message: unknown
    try {
      const { data } = frame
      message = JSON.parse(String(data instanceof ArrayBuffer ? Buffer.from(data) : data))
    } catch (cause) {
      return events.onInvalidFrame(invalidFrame('A frame is not JSON.', cause))
    }
    if (!isMessage(message)) return events.onInvalidFrame(invalidFrame('A frame is not an object.'))
    if (client.vertexai || message.setupComplete) pass(frame)
    if (!client.vertexai) events.onMessage(message)
  }

  #onClose(code: number, closeReason: string): void {
    this.#isClosed = true
    this.#closed?.resolve()
    const cause = this.#socketError
    const reason = closeReason || describeError(cause) || 'no reason given'
    if (this.#phase !== 'open') {
      // The server responded to the upgrade with HTTP. After a 4xx, another attempt would fail too.
      const isRefused = /server response: 4\d\d/.test(reason)
      return this.fail(isRefused ? 'refused' : code, reason, cause)
    }
    this.#events.onClosed(new LiveConnectionError({ code, reason, phase: 'open', cause }))
  }
}

/** The socket of Google's SDK. */
interface RawSocket {
  connect(): void
  send(text: string): void
  close(): void | Promise<void>
}

interface RawFrame {
  readonly data: unknown
}

interface RawCallbacks {
  readonly onmessage: (frame: RawFrame) => void
}

interface SocketFactory {
  create(url: string, headers: Record<string, string>, callbacks: RawCallbacks): RawSocket
}

type CreateSocket = (
  factory: SocketFactory,
  ...parameters: Parameters<SocketFactory['create']>
) => RawSocket

/**
 * Returns a copy of the SDK's live client with other sockets. The SDK does not expose its socket during `connect`, and parses
 * frames in a promise without a handler: one frame that is not JSON would end the process (genai 2.32.0).
 */
function withSocketFactory(live: Live, createSocket: CreateSocket): Live {
  const factory = readFactory(live)
  const create: SocketFactory['create'] = (...parameters) => createSocket(factory, ...parameters)
  // The copies inherit everything else from the originals.
  const replaced: unknown = Object.create(factory, { create: { value: create } })
  return Object.create(live, { webSocketFactory: { value: replaced } }) as Live
}

function readFactory(live: Live): SocketFactory {
  const factory: unknown = Reflect.get(live, 'webSocketFactory')
  if (isFactory(factory)) return factory
  throw new TypeError('This version of @google/genai does not expose its sockets. Use ^2.9.0.')
}

function isFactory(value: unknown): value is SocketFactory {
  return typeof value === 'object' && value !== null && 'create' in value
}

// genai 2.32.0 declares the field in its types and does not send it.
function announceHistory(text: string): string {
  const { setup, ...rest } = JSON.parse(text) as { setup: object }
  return JSON.stringify({
    ...rest,
    setup: { ...setup, historyConfig: { initialHistoryInClientContent: true } },
  })
}

function invalidFrame(reason: string, cause?: unknown): LiveConnectionError {
  return new LiveConnectionError({ code: 'invalid-frame', reason, phase: 'open', cause })
}

// `MessageReceiver` checks the fields.
function isMessage(value: unknown): value is LiveServerMessage {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function describeError(error: unknown): string {
  if (error === undefined) return ''
  return error instanceof Error ? error.message : String(error)
}

function ignore(): void {}

type LivePhase = 'setup' | 'open'

/** A WebSocket close code, or the reason why there is none. */
type LiveFailureCode =
  | number
  | 'timeout'
  | 'aborted'
  | 'refused'
  | 'misconfigured'
  | 'invalid-frame'

interface LiveFailure {
  readonly code: LiveFailureCode
  readonly reason: string
  readonly phase: LivePhase
  readonly cause?: unknown
}

/** A connection to Gemini Live could not be opened, or ended. */
export class LiveConnectionError extends Error {
  override readonly name = 'LiveConnectionError'
  readonly code: LiveFailureCode
  readonly reason: string
  readonly phase: LivePhase
  /** Whether a quota is exhausted. */
  readonly rateLimited: boolean
  /** Whether another attempt may succeed. */
  readonly retryable: boolean

  constructor({ code, reason, phase, cause }: LiveFailure) {
    const clean = hideKey(reason)
    super(
      `Gemini Live failed in ${phase} (${code}): ${clean}`,
      // A cause whose message contains the key would write it to every log.
      cause === undefined || clean !== reason ? undefined : { cause },
    )
    this.code = code
    this.reason = clean
    this.phase = phase
    this.rateLimited = QUOTA.test(reason)
    this.retryable = RETRYABLE.has(code) && !this.rateLimited
  }
}

export function toConnectionError(error: unknown): LiveConnectionError {
  if (error instanceof LiveConnectionError) return error
  const reason = error instanceof Error ? error.message : String(error)
  return new LiveConnectionError({ code: 'misconfigured', reason, phase: 'setup', cause: error })
}

/** Converts a connection error into the error that a client receives (ER2). Returns any other error unchanged. */
export function toClientError(thrown: unknown): unknown {
  if (!(thrown instanceof LiveConnectionError)) return thrown
  // Rarely present: a close reason has at most 123 bytes, and Google puts the delay last.
  const retryAfterSeconds = thrown.rateLimited ? readRetryDelay(thrown.reason) : undefined
  return new ProtocolError(classify(thrown), {
    cause: thrown,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  })
}

function classify({ code, reason, rateLimited, retryable }: LiveConnectionError): ErrorCode {
  if (rateLimited) return 'model-rate-limited'
  if (code === 'aborted') return 'unavailable'
  if (retryable) return OVERLOADED.test(reason) ? 'model-overloaded' : 'model-unavailable'
  return isKeyRejected(reason) || NO_ACCESS.test(reason) ? 'model-access-denied' : 'model-refused'
}

const OVERLOADED = /overloaded|high demand|\b503\b/i

// A model that does not exist, or that the key may not use. A close frame has no HTTP status.
const NO_ACCESS = /is not found for API version|PERMISSION_DENIED|\b(?:401|403|404)\b/

// Gemini closes connections with 1000 and 1005 as well. That does not end the conversation.
const RETRYABLE: ReadonlySet<LiveFailureCode> = new Set<LiveFailureCode>([
  1000,
  1001,
  1005,
  1006,
  1011,
  1012,
  1013,
  1014,
  'timeout',
])

// When a quota is exhausted, Gemini closes the socket with 1011 or refuses it with 429, and names the quota in the reason.
const QUOTA = /RESOURCE_EXHAUSTED|quota|\b429\b/i

// The key is part of the socket's URL, and so of some of its errors.
function hideKey(text: string): string {
  return text.replace(/([?&](?:key|access_token)=)[^&\s"']+/g, '$1…')
}
