import type { BaseLlmConnection, Gemini, LlmRequest, LlmResponse } from '@google/adk'
import { BaseLlm } from '@google/adk'
import type { Blob, Content, LiveConnectParameters } from '@google/genai'

import { supportsThoughts } from './live-models.ts'
import { ReconnectingLiveSession } from './reconnecting-session.ts'
import type { LiveHooks } from './message-receiver.ts'

export interface ReconnectingLiveModelOptions {
  readonly hooks: LiveHooks
  /** Timeout for the setup of a connection. Default 10 000. */
  readonly connectTimeoutMs?: number
  /** Attempts in a row without any message from the model, after which the session fails. Default 8. */
  readonly maxAttempts?: number
  /** The delay before the second attempt. It doubles each time. Default 250. */
  readonly retryDelayMs?: number
  /** Closes the connection, also during its setup. */
  readonly signal?: AbortSignal
  /** Returns the handle that the first connection resumes. Called when ADK has loaded the conversation. */
  readonly resumeFrom?: () => string | undefined
}

/** A Gemini model whose live connection reconnects when its socket closes. One instance per live session. */
export class ReconnectingLiveModel extends BaseLlm {
  readonly #inner: Gemini
  readonly #options: ReconnectingLiveModelOptions
  /** The session of the current agent. */
  #session: ReconnectingLiveSession | undefined

  constructor(inner: Gemini, options: ReconnectingLiveModelOptions) {
    super({ model: inner.model })
    this.#inner = inner
    this.#options = options
  }

  override generateContentAsync(
    request: LlmRequest,
    stream?: boolean,
    abortSignal?: AbortSignal,
  ): AsyncGenerator<LlmResponse, void> {
    return this.#inner.generateContentAsync(request, stream, abortSignal)
  }

  override async connect(request: LlmRequest): Promise<BaseLlmConnection> {
    const { hooks, resumeFrom } = this.#options
    hooks.onConnecting(request)
    let session: ReconnectingLiveSession | undefined
    const connect = async (params: LiveConnectParameters): Promise<ReconnectingLiveSession> => {
      session = this.#createSession(request, params, this.#session ? undefined : resumeFrom?.())
      await session.open()
      return session
    }
    // ADK prepares the setup and reads the messages. Only the client that it connects with is replaced.
    const connection = await this.#inner.connect.call(
      withLiveClient(this.#inner, { live: { connect } }),
      request,
    )
    if (!session) return connection
    // The first agent waits for input. An agent that receives the conversation by a transfer replies to its last message.
    const isTransfer = this.#session !== undefined
    this.#session = session
    hooks.onConnected()
    return new ReconnectingLiveConnection(connection, session, isTransfer)
  }

  /** Interrupts the model's speech. */
  interrupt(): void {
    this.#session?.interrupt()
  }

  /** The handle that covers everything so far, if there is one. */
  get coveringHandle(): string | undefined {
    return this.#session?.coveringHandle
  }

  /** Resolves when no connection is open. */
  get disconnected(): Promise<void> {
    return this.#session?.disconnected ?? Promise.resolve()
  }

  #createSession(
    request: LlmRequest,
    { model, config, callbacks }: LiveConnectParameters,
    handle: string | undefined,
  ) {
    const { enableAffectiveDialog, ...rest } = config ?? {}
    const { thinkingConfig } = request.config ?? {}
    const { connectTimeoutMs = 10_000, maxAttempts = 8, retryDelayMs = 250 } = this.#options
    return new ReconnectingLiveSession({
      client: this.#inner.liveApiClient,
      model,
      config: {
        ...rest,
        // ADK 2.0.0 always sends `false`. That is the default, and newer models reject the field.
        ...(enableAffectiveDialog && { enableAffectiveDialog }),
        // ADK 2.0.0 does not pass on the agent's thinking config.
        ...(thinkingConfig && supportsThoughts(model) && { thinkingConfig }),
        ...(handle !== undefined && { sessionResumption: { handle } }),
      },
      history: request.contents,
      // A model may name a tool `constructor`.
      isTool: (name) => Object.hasOwn(request.toolsDict, name),
      hooks: this.#options.hooks,
      connectTimeoutMs,
      maxAttempts,
      retryDelayMs,
      signal: this.#options.signal,
      callbacks,
    })
  }
}

/** Returns the model with another live client. Its own getters and private fields still see the model itself. */
function withLiveClient(model: Gemini, liveApiClient: unknown): Gemini {
  return new Proxy(model, {
    get: (target, key): unknown =>
      key === 'liveApiClient' ? liveApiClient : Reflect.get(target, key, target),
  })
}

/**
 * Marks the end of an audio stream. ADK's `LiveRequestQueue` has no request for it, and a message sent past the queue would overtake the
 * audio in it. So this empty chunk goes through the queue instead.
 */
export const AUDIO_END: Blob = Object.freeze({ mimeType: 'audio/pcm', data: '' })

/** ADK's own connection over a session that reconnects. */
class ReconnectingLiveConnection implements BaseLlmConnection {
  readonly #adk: BaseLlmConnection
  readonly #session: ReconnectingLiveSession
  /** Whether the model replies to the last message of the history. */
  readonly #repliesToHistory: boolean

  constructor(adk: BaseLlmConnection, session: ReconnectingLiveSession, repliesToHistory: boolean) {
    this.#adk = adk
    this.#session = session
    this.#repliesToHistory = repliesToHistory
  }

  /** Sends a history without requesting a reply. ADK would drop calls and results, and some models would speak at once. */
  async sendHistory(history: Content[]): Promise<void> {
    if (this.#session.isResumed) return
    const prompt = this.#repliesToHistory ? history.at(-1) : undefined
    this.#session.sendHistory(prompt ? history.slice(0, -1) : history)
    if (prompt) await this.#adk.sendContent(prompt)
  }

  sendContent(content: Content): Promise<void> {
    return this.#adk.sendContent(content)
  }

  async sendRealtime(blob: Blob): Promise<void> {
    if (blob === AUDIO_END) this.#session.sendRealtimeInput({ audioStreamEnd: true })
    else await this.#adk.sendRealtime(blob)
  }

  async sendActivityStart(): Promise<void> {
    this.#session.sendRealtimeInput({ activityStart: {} })
  }

  async sendActivityEnd(): Promise<void> {
    this.#session.sendRealtimeInput({ activityEnd: {} })
  }

  async *receive(): AsyncGenerator<LlmResponse, void> {
    try {
      for await (const response of this.#adk.receive()) {
        const valid = withoutStaleCalls(response, this.#session)
        if (valid) yield valid
      }
    } finally {
      // ADK 2.0.0 leaves the connection open on `return()`.
      this.#session.close()
    }
  }

  async close(): Promise<void> {
    this.#session.close()
  }
}

/** Removes calls that the model cancelled, or whose session closed, while they waited in ADK's queue. They must not run. */
function withoutStaleCalls(
  response: LlmResponse,
  session: ReconnectingLiveSession,
): LlmResponse | undefined {
  const parts = response.content?.parts
  if (!parts?.some((part) => part.functionCall)) return response
  const kept = parts.filter(({ functionCall }) => !functionCall || session.acceptCall(functionCall))
  if (kept.length === parts.length) return response
  return kept.length === 0
    ? undefined
    : { ...response, content: { ...response.content, parts: kept } }
}
