import { setTimeout as wait } from 'node:timers/promises'

import type {
  Content,
  FunctionCall,
  FunctionResponse,
  GoogleGenAI,
  LiveCallbacks,
  LiveConnectConfig,
  LiveSendRealtimeInputParameters,
} from '@google/genai'

import { LiveConnectionError, toConnectionError, openGeminiSocket } from './gemini-socket.ts'
import { type ConnectionHandler, type LiveHooks, MessageReceiver } from './message-receiver.ts'
import { takesTextAsRealtime, chooseMediaField, sendHistory, sendOutgoing } from './live-models.ts'
import type { GeminiSocket } from './gemini-socket.ts'
import type { ConnectionStart, Delivery, Outgoing } from './replay-buffer.ts'
import { ReplayBuffer } from './replay-buffer.ts'

interface SessionOptions {
  readonly client: GoogleGenAI
  readonly model: string
  readonly config: LiveConnectConfig
  readonly history: readonly Content[]
  readonly isTool: (name: string) => boolean
  readonly hooks: LiveHooks
  readonly connectTimeoutMs: number
  readonly maxAttempts: number
  readonly retryDelayMs: number
  readonly signal: AbortSignal | undefined
  /** ADK's callbacks. */
  readonly callbacks: LiveCallbacks
}

type State =
  | { readonly state: 'connecting' }
  | { readonly state: 'open'; readonly socket: GeminiSocket; readonly since: number }
  | { readonly state: 'closed' }

/** A connection that stayed open this long resets the count of attempts, even if it carried no message. */
const STABLE_AFTER_MS = 30_000

const MAX_RETRY_DELAY_MS = 8000

/** The close code for a request that is not valid. */
const INVALID_ARGUMENT = 1007

/** How often the first connection tries to resume a session of another process. */
const RESUME_ATTEMPTS = 4

/** Time that a reconnect may take, out of the time that `goAway` leaves. */
const RECONNECT_MS = 2000

/** Replaces the SDK's `Session` under ADK's connection. It opens a new SDK session whenever one ends. */
export class ReconnectingLiveSession implements ConnectionHandler {
  readonly #options: SessionOptions
  readonly #buffer: ReplayBuffer
  readonly #receiver: MessageReceiver
  /** Aborts the setup of a connection, and the wait for one, when the session closes. An open connection needs none. */
  #closing: AbortController | undefined = new AbortController()
  #state: State = { state: 'connecting' }
  /** Counts connections. Messages from an earlier one are ignored. */
  #connection = 0
  /** Attempts since the last message from the model. */
  #attempts = 0
  #isUserActive = false
  #isResumed = false
  /** Whether the connection was resumed and the model has not sent anything since. */
  #isUnconfirmed = false
  #disconnected: Promise<void> = Promise.resolve()
  /** Set after `goAway`: fires shortly before Gemini closes the connection. */
  #goAway: NodeJS.Timeout | undefined

  constructor(options: SessionOptions) {
    this.#options = options
    const handle = options.config.sessionResumption?.handle
    this.#buffer = new ReplayBuffer(handle, handle === undefined ? [] : options.history)
    this.#receiver = new MessageReceiver(options, this.#buffer, this)
    options.signal?.addEventListener('abort', this.#abort, { once: true })
    if (options.signal?.aborted) this.#closing?.abort()
  }

  async open(): Promise<void> {
    const { hooks } = this.#options
    hooks.onStatus('connecting')
    try {
      this.#isResumed = await this.#openFirst()
    } catch (error) {
      this.#end()
      throw error
    }
    hooks.onStatus('open')
  }

  /** Whether the session continues one of another process. The model then knows the conversation. */
  get isResumed(): boolean {
    return this.#isResumed
  }

  /** The handle that covers everything so far, if there is one. */
  get coveringHandle(): string | undefined {
    return this.#buffer.coveringHandle
  }

  /** Resolves when the last connection is closed. */
  get disconnected(): Promise<void> {
    return this.#disconnected
  }

  /** Opens the first connection. Returns whether it was resumed. A handle that Gemini does not accept is dropped. */
  async #openFirst(): Promise<boolean> {
    const { hooks, history, retryDelayMs } = this.#options
    for (let attempt = 1; ; attempt += 1) {
      const { start } = this.#buffer.prepareReconnect()
      const isResumed = start.type === 'resumed'
      try {
        await this.#connect(start, !isResumed && history.length > 0)
        return isResumed
      } catch (error) {
        if (!isResumed || this.#signal.aborted) throw error
        const failure = toConnectionError(error)
        hooks.onError(failure)
        // Gemini may not have noticed yet that the previous connection has ended.
        if (failure.retryable && attempt < RESUME_ATTEMPTS)
          await waitBeforeAttempt(attempt, retryDelayMs, this.#signal)
        else this.#buffer.dropHandle()
      }
    }
  }

  /** Sends the earlier conversation. The model reads it and does not reply. */
  sendHistory(history: readonly Content[]): void {
    const described = this.#buffer.setHistory(history)
    if (this.#state.state === 'open') sendHistory(this.#target(this.#state.socket), described)
  }

  sendClientContent({ turns }: { readonly turns: readonly Content[] }): void {
    for (const content of turns) this.#send({ type: 'content', content })
  }

  sendToolResponse(params: { readonly functionResponses: readonly FunctionResponse[] }): void {
    const partial = params.functionResponses.filter(({ willContinue }) => willContinue)
    const complete = params.functionResponses.filter(({ willContinue }) => !willContinue)
    if (partial.length > 0) this.#send({ type: 'partial-results', responses: partial })
    if (complete.length > 0) this.#send({ type: 'results', responses: complete })
  }

  sendRealtimeInput(input: LiveSendRealtimeInputParameters): void {
    const { text } = input
    if (text !== undefined) {
      return this.#send({ type: 'content', content: { role: 'user', parts: [{ text }] } })
    }
    if (input.activityStart) this.#isUserActive = true
    if (input.activityEnd) this.#isUserActive = false
    // Audio is not buffered: it is lost while there is no connection.
    if (this.#state.state !== 'open') return
    this.#state.socket.session.sendRealtimeInput(chooseMediaField(this.#options.model, input))
  }

  /**
   * Interrupts the model's speech: content interrupts it, and incomplete content requests no reply. Does nothing for a model that takes
   * content only as history.
   */
  interrupt(): void {
    if (this.#state.state !== 'open' || takesTextAsRealtime(this.#options.model)) return
    this.#state.socket.session.sendClientContent({ turnComplete: false })
  }

  close(): void {
    if (this.#state.state === 'closed') return
    const { callbacks } = this.#options
    this.#end()
    // ADK does not read the argument.
    callbacks.onclose?.({} as Parameters<typeof callbacks.onclose>[0])
  }

  /** Takes a call out of ADK's queue. Returns false if the model has cancelled it or the session is closed. */
  acceptCall(call: FunctionCall): boolean {
    return this.#receiver.acceptCall(call) && this.#state.state !== 'closed'
  }

  /** The connection delivered output or a call. */
  onProgress(): void {
    this.#attempts = 0
  }

  /** Sends results of calls that no tool runs. */
  sendResults(responses: readonly FunctionResponse[]): void {
    this.#send({ type: 'results', responses })
  }

  onHandle(): void {
    this.#options.hooks.onHandle()
    if (this.#goAway && this.#buffer.isEmpty) this.#reconnectNow()
  }

  onGoAway(timeLeft: string | undefined): void {
    this.#scheduleReconnect(timeLeft)
  }

  readonly #abort = (): void => {
    this.#closing?.abort()
    this.close()
  }

  get #signal(): AbortSignal {
    this.#closing ??= new AbortController()
    return this.#closing.signal
  }

  #end(): void {
    if (this.#state.state === 'open') this.#disconnected = this.#state.socket.close()
    this.#state = { state: 'closed' }
    this.#connection += 1
    this.#clearGoAway()
    this.#closing ??= new AbortController()
    this.#closing.abort()
    this.#options.signal?.removeEventListener('abort', this.#abort)
    this.#options.hooks.onStatus('closed')
  }

  #fail(error: LiveConnectionError): void {
    const { callbacks } = this.#options
    this.#end()
    // ADK throws this value from `receive`.
    callbacks.onerror?.(error as unknown as Parameters<typeof callbacks.onerror>[0])
  }

  async #connect(start: ConnectionStart, startsWithHistory: boolean): Promise<void> {
    const { client, model, config, connectTimeoutMs, hooks } = this.#options
    const connection = ++this.#connection
    const isCurrent = (): boolean => connection === this.#connection
    const socket = await openGeminiSocket({
      client,
      model,
      config: { ...config, sessionResumption: toResumption(start) },
      startsWithHistory: startsWithHistory && takesTextAsRealtime(model),
      timeoutMs: connectTimeoutMs,
      signal: this.#signal,
      events: {
        onMessage: (message) => {
          if (!isCurrent()) return
          // Gemini sends a handle right after the setup, also if it refuses the session a moment later.
          if (!message.sessionResumptionUpdate) this.#isUnconfirmed = false
          this.#receiver.receive(message)
        },
        onClosed: (error) => isCurrent() && this.#recoverFrom(error),
        onInvalidFrame: (error) => hooks.onError(error),
      },
    })
    if (!isCurrent()) {
      this.#disconnected = socket.close()
      throw new LiveConnectionError({ code: 'aborted', reason: 'Closed.', phase: 'setup' })
    }
    this.#state = { state: 'open', socket, since: performance.now() }
    this.#closing = undefined
    this.#isUnconfirmed = start.type === 'resumed'
  }

  #recoverFrom(error: LiveConnectionError): void {
    // Gemini may refuse a handle with 1007 only after it has completed the setup.
    const isHandleRefused =
      error.code === INVALID_ARGUMENT && this.#isUnconfirmed && this.#buffer.dropHandle()
    if (!error.retryable && !isHandleRefused) return this.#fail(error)
    this.#options.hooks.onError(error)
    if (this.#state.state === 'open' && performance.now() - this.#state.since >= STABLE_AFTER_MS) {
      this.#attempts = 0
    }
    this.#replaceConnection(error)
  }

  #replaceConnection(cause: LiveConnectionError): void {
    const { hooks } = this.#options
    if (this.#state.state === 'open') this.#disconnected = this.#state.socket.close()
    this.#state = { state: 'connecting' }
    this.#connection += 1
    this.#clearGoAway()
    hooks.onStatus('reconnecting')
    this.#receiver.endLostTurn()
    // `#reconnect` reports its failures itself.
    void this.#reconnect(cause)
  }

  async #reconnect(cause: LiveConnectionError): Promise<void> {
    const { maxAttempts, retryDelayMs, hooks } = this.#options
    let failure = cause
    while (this.#attempts < maxAttempts) {
      try {
        await waitBeforeAttempt(this.#attempts, retryDelayMs, this.#signal)
        await this.#disconnected
        if (this.#signal.aborted) return
        this.#attempts += 1
        await this.#resume()
        return hooks.onStatus('open')
      } catch (error) {
        if (this.#signal.aborted) return
        failure = toConnectionError(error)
        hooks.onError(failure)
      }
      // The handle may have expired: the next attempt starts without it.
      if (!failure.retryable && !this.#buffer.dropHandle()) break
    }
    this.#fail(failure)
  }

  async #resume(): Promise<void> {
    const { start, dropped } = this.#buffer.prepareReconnect()
    for (const { message } of dropped) this.#reportDropped(message)
    const history = start.type === 'fresh' ? start.history : []
    await this.#connect(start, history.length > 0)
    if (this.#state.state !== 'open') return
    const { socket } = this.#state
    if (history.length > 0) sendHistory(this.#target(socket), history)
    if (this.#isUserActive) socket.session.sendRealtimeInput({ activityStart: {} })
    for (const delivery of this.#buffer.unsent) this.#deliver(delivery, socket)
  }

  #reportDropped({ type }: Outgoing): void {
    const reason = `Dropped ${type}: the connection was lost each time it was sent.`
    this.#options.hooks.onDropped(new LiveConnectionError({ code: 1006, reason, phase: 'open' }))
  }

  #send(message: Outgoing): void {
    if (this.#state.state === 'closed') return
    const delivery = this.#buffer.add(message)
    if (this.#state.state === 'open') this.#deliver(delivery, this.#state.socket)
  }

  #deliver(delivery: Delivery, socket: GeminiSocket): void {
    try {
      sendOutgoing(this.#target(socket), delivery.message, this.#buffer)
      this.#buffer.markSent(delivery)
    } catch (error) {
      // The SDK rejects the message, and would reject it again. ADK would end the run.
      this.#buffer.remove(delivery)
      this.#options.hooks.onError(error)
    }
  }

  #target({ session }: GeminiSocket): Parameters<typeof sendOutgoing>[0] {
    return { session, model: this.#options.model }
  }

  /** Reconnects at once if nothing would be lost. Otherwise when Gemini has sent a handle that covers the turn, or when the time is up. */
  #scheduleReconnect(timeLeft: string | undefined): void {
    this.#attempts = 0
    this.#clearGoAway()
    this.#goAway = setTimeout(() => this.#reconnectNow(), reconnectAfterMs(timeLeft))
    if (this.#buffer.isEmpty) this.#reconnectNow()
  }

  #clearGoAway(): void {
    clearTimeout(this.#goAway)
    this.#goAway = undefined
  }

  #reconnectNow(): void {
    // `goAway` may arrive before the connection is open. Then the timer fires later, or Gemini closes the connection.
    if (this.#state.state !== 'open') return
    this.#replaceConnection(
      new LiveConnectionError({ code: 1001, reason: 'goAway', phase: 'open' }),
    )
  }
}

/** Returns when to replace a connection that Gemini closes after `timeLeft`, a duration in Google's format such as `9.5s`. */
function reconnectAfterMs(timeLeft: string | undefined): number {
  const leftMs = Number.parseFloat(timeLeft ?? '') * 1000 || 0
  return Math.max(leftMs / 2, leftMs - RECONNECT_MS)
}

/** Waits before another attempt: no time before the first, then twice as long each time, with jitter so that clients spread out. */
async function waitBeforeAttempt(
  failures: number,
  delayMs: number,
  signal: AbortSignal,
): Promise<void> {
  if (failures === 0) return
  const longest = Math.min(MAX_RETRY_DELAY_MS, delayMs * 2 ** (failures - 1))
  await wait(longest * (0.5 + Math.random() / 2), undefined, { signal })
}

function toResumption(start: ConnectionStart): { handle?: string } {
  return start.type === 'resumed' ? { handle: start.handle } : {}
}
