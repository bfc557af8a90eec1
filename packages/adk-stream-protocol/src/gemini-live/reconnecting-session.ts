import type {
  Content,
  FunctionCall,
  FunctionResponse,
  GoogleGenAI,
  LiveConnectConfig,
  LiveSendRealtimeInputParameters,
  LiveServerMessage,
} from '@google/genai'

import { backOff } from './backoff.ts'
import { Departure } from './go-away-timer.ts'
import type { Sending, Sent } from './replay-entry.ts'
import { LiveConnectionError, toConnectionError } from './live-connection-error.ts'
import type { LiveHooks } from './live-hooks.ts'
import { LiveInbox } from './message-receiver.ts'
import type { Beginning } from './replay-buffer.ts'
import { LiveJournal } from './replay-buffer.ts'
import { takesTextAsRealtime } from './model-capabilities.ts'
import type { LiveSocket } from './open-socket.ts'
import { openLiveSocket } from './open-socket.ts'
import { nameMedia, writeHistory, writeSending } from './send-messages.ts'

export interface SessionOptions {
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
  /** Where ADK takes messages, and learns of the end. */
  readonly sink: SessionSink
}

export interface SessionSink {
  readonly onMessage: (message: LiveServerMessage) => void
  readonly onError: (error: LiveConnectionError) => void
  readonly onClose: () => void
}

type State =
  | { readonly state: 'connecting' }
  | { readonly state: 'open'; readonly socket: LiveSocket; readonly since: number }
  | { readonly state: 'closed' }

// A connection that lasted this long was not in vain, even if nobody spoke.
const STEADY_MS = 30_000

/** Takes the place of the SDK's `Session` under ADK's connection, and outlives the SDK's sessions. */
export class LastingSession {
  readonly #options: SessionOptions
  readonly #journal: LiveJournal
  readonly #inbox: LiveInbox
  readonly #life = new AbortController()
  #state: State = { state: 'connecting' }
  /** Counts connections: what an earlier one still tells is not heard. */
  #connection = 0
  /** Attempts since something last came of one. */
  #attempts = 0
  #isActive = false
  readonly #departure = new Departure()

  constructor(options: SessionOptions) {
    this.#options = options
    const handle = options.config.sessionResumption?.handle
    this.#journal = new LiveJournal(handle, handle === undefined ? [] : options.history)
    this.#inbox = new LiveInbox({
      journal: this.#journal,
      hooks: options.hooks,
      isTool: options.isTool,
      forward: options.sink.onMessage,
      onProgress: () => void (this.#attempts = 0),
      answer: (responses) => this.#send({ type: 'results', responses }),
      onHandle: () => this.#departure.isPlanned && this.#journal.isCovered && this.#leave(),
      onGoAway: (timeLeft) => this.#prepareToLeave(timeLeft),
    })
    options.signal?.addEventListener('abort', this.#abort, { once: true })
    if (options.signal?.aborted) this.#life.abort()
  }

  async open(): Promise<void> {
    const { hooks, history } = this.#options
    hooks.onStatus('connecting')
    const { beginning } = this.#journal.restart()
    try {
      await this.#connect(beginning, history.length > 0)
    } catch (error) {
      this.#end()
      throw error
    }
    hooks.onStatus('open')
  }

  /** What was said before, for the model to know and not to answer. */
  sendHistory(history: readonly Content[]): void {
    const told = this.#journal.begin(history)
    if (this.#state.state === 'open') writeHistory(this.#address(this.#state.socket), told)
  }

  sendClientContent({ turns }: { readonly turns: readonly Content[] }): void {
    for (const content of turns) this.#send({ type: 'content', content })
  }

  sendToolResponse(params: { readonly functionResponses: readonly FunctionResponse[] }): void {
    this.#send({ type: 'results', responses: params.functionResponses })
  }

  sendRealtimeInput(input: LiveSendRealtimeInputParameters): void {
    const { text } = input
    if (text !== undefined) {
      return this.#send({ type: 'content', content: { role: 'user', parts: [{ text }] } })
    }
    if (input.activityStart) this.#isActive = true
    if (input.activityEnd) this.#isActive = false
    // Sound that nobody hears is lost, as in any conversation.
    if (this.#state.state !== 'open') return
    this.#state.socket.session.sendRealtimeInput(nameMedia(this.#options.model, input))
  }

  /**
   * Breaks off what the model says. Content interrupts it, and content that is not complete asks for nothing. A model that takes
   * content only as history cannot be interrupted in this way.
   */
  hush(): void {
    if (this.#state.state !== 'open' || takesTextAsRealtime(this.#options.model)) return
    this.#state.socket.session.sendClientContent({ turnComplete: false })
  }

  close(): void {
    if (this.#state.state === 'closed') return
    this.#end()
    this.#options.sink.onClose()
  }

  /** Whether a call that ADK takes from its queue is still wanted. */
  admits(call: FunctionCall): boolean {
    return this.#inbox.admits(call) && this.#state.state !== 'closed'
  }

  readonly #abort = (): void => {
    this.#life.abort()
    this.close()
  }

  #end(): void {
    if (this.#state.state === 'open') this.#state.socket.close()
    this.#state = { state: 'closed' }
    this.#connection += 1
    this.#departure.cancel()
    this.#life.abort()
    this.#options.signal?.removeEventListener('abort', this.#abort)
    this.#options.hooks.onStatus('closed')
  }

  #fail(error: LiveConnectionError): void {
    this.#end()
    this.#options.sink.onError(error)
  }

  async #connect(beginning: Beginning, beginsWithHistory: boolean): Promise<void> {
    const { client, model, config, connectTimeoutMs, hooks } = this.#options
    const connection = ++this.#connection
    const isCurrent = (): boolean => connection === this.#connection
    const socket = await openLiveSocket({
      client,
      model,
      config: { ...config, sessionResumption: toResumption(beginning) },
      beginsWithHistory: beginsWithHistory && takesTextAsRealtime(model),
      timeoutMs: connectTimeoutMs,
      signal: this.#life.signal,
      events: {
        onMessage: (message) => isCurrent() && this.#inbox.take(message),
        onClosed: (error) => isCurrent() && this.#lose(error),
        onOddFrame: hooks.onError,
      },
    })
    if (!isCurrent()) {
      socket.close()
      throw new LiveConnectionError({ code: 'aborted', reason: 'Closed.', phase: 'setup' })
    }
    this.#state = { state: 'open', socket, since: Date.now() }
  }

  #lose(error: LiveConnectionError): void {
    if (!error.retryable) return this.#fail(error)
    this.#options.hooks.onError(error)
    if (this.#state.state === 'open' && Date.now() - this.#state.since >= STEADY_MS) {
      this.#attempts = 0
    }
    this.#move(error)
  }

  /** Goes over to a new connection. */
  #move(cause: LiveConnectionError): void {
    const { hooks } = this.#options
    if (this.#state.state === 'open') this.#state.socket.close()
    this.#state = { state: 'connecting' }
    this.#connection += 1
    this.#departure.cancel()
    hooks.onStatus('reconnecting')
    this.#inbox.breakOff()
    // It reports its failures itself.
    void this.#reconnect(cause)
  }

  async #reconnect(cause: LiveConnectionError): Promise<void> {
    const { maxAttempts, retryDelayMs: delayMs, hooks } = this.#options
    let failure = cause
    while (this.#attempts < maxAttempts) {
      try {
        await backOff(this.#attempts, { delayMs, signal: this.#life.signal })
        this.#attempts += 1
        await this.#resume()
        return hooks.onStatus('open')
      } catch (error) {
        if (this.#life.signal.aborted) return
        failure = toConnectionError(error)
        hooks.onError(failure)
      }
      // A handle may have expired; without it, only the server's word on the rest counts.
      if (!failure.retryable && !this.#journal.forgetHandle()) break
    }
    this.#fail(failure)
  }

  async #resume(): Promise<void> {
    const { beginning, givenUp } = this.#journal.restart()
    for (const { sending } of givenUp) this.#reportGivenUp(sending)
    const history = beginning.type === 'fresh' ? beginning.history : []
    await this.#connect(beginning, history.length > 0)
    if (this.#state.state !== 'open') return
    const { socket } = this.#state
    if (history.length > 0) writeHistory(this.#address(socket), history)
    if (this.#isActive) socket.session.sendRealtimeInput({ activityStart: {} })
    for (const entry of this.#journal.unsent) this.#deliver(entry, socket)
  }

  #reportGivenUp(sending: Sending): void {
    const reason = `Gave up ${sending.type}: the connection was lost each time it was sent.`
    this.#options.hooks.onGivenUp(new LiveConnectionError({ code: 1006, reason, phase: 'open' }))
  }

  #send(sending: Sending): void {
    if (this.#state.state === 'closed') return
    const entry = this.#journal.send(sending)
    if (this.#state.state === 'open') this.#deliver(entry, this.#state.socket)
  }

  #deliver(entry: Sent, socket: LiveSocket): void {
    try {
      writeSending(this.#address(socket), entry.sending, this.#journal)
      this.#journal.delivered(entry)
    } catch (error) {
      // The SDK does not take it, now or ever; ADK would end the run for it.
      this.#journal.discard(entry)
      this.#options.hooks.onError(error)
    }
  }

  #address({ session }: LiveSocket): Parameters<typeof writeSending>[0] {
    return { session, model: this.#options.model }
  }

  /** Leaves at once if nothing is under way, else when the turn is over and Gemini has given a handle for it, or time runs out. */
  #prepareToLeave(timeLeft: string | undefined): void {
    this.#attempts = 0
    this.#departure.plan(timeLeft, () => this.#leave())
    if (this.#journal.isCovered) this.#leave()
  }

  #leave(): void {
    // It may be told before it is open; then the plan, or Gemini itself, will end it.
    if (this.#state.state !== 'open') return
    this.#move(new LiveConnectionError({ code: 1001, reason: 'goAway', phase: 'open' }))
  }
}

function toResumption(beginning: Beginning): { handle?: string } {
  return beginning.type === 'resumed' ? { handle: beginning.handle } : {}
}
