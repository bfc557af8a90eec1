import type { GoogleGenAI, LiveConnectConfig, LiveServerMessage, Session } from '@google/genai'

import type { LiveFailureCode, LivePhase } from './live-connection-error.ts'
import { LiveConnectionError } from './live-connection-error.ts'
import type { RawFrame, RawSocket } from './tap-live.ts'
import { tapLive } from './tap-live.ts'

/** One connection to Gemini, its setup complete. */
export interface LiveSocket {
  readonly session: Session
  close(): void
}

interface SocketEvents {
  readonly onMessage: (message: LiveServerMessage) => void
  /** The open connection ended. */
  readonly onClosed: (error: LiveConnectionError) => void
  /** A frame that is no message. */
  readonly onOddFrame: (error: LiveConnectionError) => void
}

export interface SocketOptions {
  readonly client: GoogleGenAI
  readonly model: string
  readonly config: LiveConnectConfig
  /** Tells Gemini that a history comes first, which is not to be answered. */
  readonly beginsWithHistory: boolean
  readonly timeoutMs: number
  readonly signal: AbortSignal
  readonly events: SocketEvents
}

/** Opens a connection or rejects with a `LiveConnectionError`; leaves no socket behind when it rejects. */
export async function openLiveSocket(options: SocketOptions): Promise<LiveSocket> {
  const attempt = new Attempt(options)
  const { timeoutMs, signal } = options
  const timer = setTimeout(
    () => attempt.fail('timeout', `No answer within ${timeoutMs} ms.`),
    timeoutMs,
  )
  const abort = (): void => attempt.fail('aborted', 'The live run has ended.')
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  try {
    return await attempt.open()
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}

/** The SDK's `connect` never rejects for what happens to the socket (js-genai#1257); this watches the socket beside it. */
class Attempt {
  readonly #options: SocketOptions
  readonly #failed: Promise<never>
  #reject: (error: LiveConnectionError) => void = ignore
  #socket: RawSocket | undefined
  #phase: LivePhase | 'failed' = 'setup'
  #trouble: unknown

  constructor(options: SocketOptions) {
    this.#options = options
    this.#failed = new Promise((_, reject) => {
      this.#reject = reject
    })
    // It may fail before anybody waits for it.
    this.#failed.catch(ignore)
  }

  async open(): Promise<LiveSocket> {
    const session = await Promise.race([this.#failed, this.#connect()])
    this.#phase = 'open'
    return { session, close: () => this.#socket?.close() }
  }

  fail(code: LiveFailureCode, reason: string, cause?: unknown): void {
    if (this.#phase !== 'setup') return
    this.#phase = 'failed'
    this.#reject(new LiveConnectionError({ code, reason, phase: 'setup', cause }))
    this.#socket?.close()
  }

  async #connect(): Promise<Session> {
    const { client, model, config, beginsWithHistory, events } = this.#options
    const live = tapLive(client.live, {
      onSocket: (socket) => this.#takeSocket(socket),
      onSetup: (text) => (beginsWithHistory ? announceHistory(text) : text),
      onFrame: (frame, pass) => this.#takeFrame(frame, pass),
    })
    const callbacks = {
      // On Vertex AI the SDK renames fields on the way; elsewhere its copy of the frames is not needed.
      onmessage: client.vertexai ? events.onMessage : ignore,
      onerror: (event: { readonly error?: unknown; readonly message?: string }) => {
        this.#trouble = event.error ?? event.message
      },
      onclose: (event: { readonly code: number; readonly reason: string }) => {
        this.#takeClose(event.code, event.reason)
      },
    }
    try {
      return await live.connect({ model, config, callbacks })
    } catch (error) {
      this.fail('misconfigured', toWords(error), error)
      return this.#failed
    }
  }

  #takeSocket(socket: RawSocket): void {
    this.#socket = socket
    // Given up while the SDK asked for credentials.
    if (this.#phase === 'failed') throw new TypeError('The attempt was given up.')
  }

  #takeFrame(frame: RawFrame, pass: (frame: RawFrame) => void): void {
    if (this.#phase === 'failed') return
    const { client, events } = this.#options
    let message: unknown
    try {
      const { data } = frame
      message = JSON.parse(String(data instanceof ArrayBuffer ? Buffer.from(data) : data))
    } catch (cause) {
      return events.onOddFrame(oddFrame('A frame is not JSON.', cause))
    }
    if (!isMessage(message)) return events.onOddFrame(oddFrame('A frame is not an object.'))
    if (client.vertexai || message.setupComplete) pass(frame)
    if (!client.vertexai) events.onMessage(message)
  }

  #takeClose(code: number, reason: string): void {
    const trouble = this.#trouble
    const words = reason || toWords(trouble) || 'no reason given'
    if (this.#phase !== 'open') {
      // The upgrade was answered by HTTP: asking again will not help if that was a 4xx.
      const isRefused = /server response: 4\d\d/.test(words)
      return this.fail(isRefused ? 'refused' : code, words, trouble)
    }
    const { onClosed } = this.#options.events
    onClosed(new LiveConnectionError({ code, reason: words, phase: 'open', cause: trouble }))
  }
}

// genai 2.32.0 has the field in its types and leaves it out of what it sends.
function announceHistory(text: string): string {
  const { setup, ...rest } = JSON.parse(text) as { setup: object }
  return JSON.stringify({
    ...rest,
    setup: { ...setup, historyConfig: { initialHistoryInClientContent: true } },
  })
}

function oddFrame(reason: string, cause?: unknown): LiveConnectionError {
  return new LiveConnectionError({ code: 'odd-frame', reason, phase: 'open', cause })
}

// What it holds is checked by those who read it.
function isMessage(value: unknown): value is LiveServerMessage {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function toWords(error: unknown): string {
  if (error === undefined) return ''
  return error instanceof Error ? error.message : String(error)
}

function ignore(): void {}
