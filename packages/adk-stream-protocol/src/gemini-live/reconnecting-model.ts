import type { BaseLlmConnection, Gemini, LlmRequest, LlmResponse } from '@google/adk'
import { BaseLlm } from '@google/adk'
import type { LiveCallbacks, LiveConnectParameters } from '@google/genai'

import { LastingConnection } from './reconnecting-connection.ts'
import type { SessionSink } from './reconnecting-session.ts'
import { LastingSession } from './reconnecting-session.ts'
import type { LiveHooks } from './live-hooks.ts'
import { tellsThoughts } from './model-capabilities.ts'

export interface LastingModelOptions {
  readonly hooks: LiveHooks
  /** How long a connection may take to be set up. Default 10 000. */
  readonly connectTimeoutMs?: number
  /** Attempts in a row from which nothing comes, after which a lost connection is given up. Default 8. */
  readonly maxAttempts?: number
  /** The first wait between two such attempts; it doubles each time. Default 250. */
  readonly retryDelayMs?: number
  /** Ends the connection, also one that is being made. */
  readonly signal?: AbortSignal
}

/** A model whose live connection outlives its sockets. One per live run. */
export class LastingModel extends BaseLlm {
  readonly #inner: Gemini
  readonly #options: LastingModelOptions
  #connection: LastingConnection | undefined

  constructor(inner: Gemini, options: LastingModelOptions) {
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
    const { hooks } = this.#options
    hooks.onConnecting(request)
    let session: LastingSession | undefined
    const connect = async (params: LiveConnectParameters): Promise<LastingSession> => {
      session = this.#createSession(request, params)
      await session.open()
      return session
    }
    // ADK prepares the setup and reads the messages; only the client that it connects with is another.
    const connection = await this.#inner.connect.call(
      withLiveClient(this.#inner, { live: { connect } }),
      request,
    )
    if (!session) return connection
    // The first agent waits for what is said; one that a conversation is handed to answers what it is handed over with.
    const isHandedOver = this.#connection !== undefined
    this.#connection = new LastingConnection(connection, session, { answersHistory: isHandedOver })
    hooks.onConnected()
    return this.#connection
  }

  /** Asks the model to break off what it is saying. */
  hush(): void {
    this.#connection?.hush()
  }

  #createSession(request: LlmRequest, { model, config, callbacks }: LiveConnectParameters) {
    const { enableAffectiveDialog, ...rest } = config ?? {}
    const { thinkingConfig } = request.config ?? {}
    const { connectTimeoutMs = 10_000, maxAttempts = 8, retryDelayMs = 250 } = this.#options
    return new LastingSession({
      client: this.#inner.liveApiClient,
      model,
      config: {
        ...rest,
        // ADK 2.0.0 always sends `false`, which is the default, and which newer models refuse to read.
        ...(enableAffectiveDialog && { enableAffectiveDialog }),
        // ADK 2.0.0 leaves behind how the agent wants its model to think.
        ...(thinkingConfig && tellsThoughts(model) && { thinkingConfig }),
      },
      history: request.contents,
      // A model may well name a tool `constructor`.
      isTool: (name) => Object.hasOwn(request.toolsDict, name),
      hooks: this.#options.hooks,
      connectTimeoutMs,
      maxAttempts,
      retryDelayMs,
      signal: this.#options.signal,
      sink: toSink(callbacks),
    })
  }
}

/** The model with another live client. Its own getters and private fields see the model itself. */
function withLiveClient(model: Gemini, liveApiClient: unknown): Gemini {
  return new Proxy(model, {
    get: (target, key): unknown =>
      key === 'liveApiClient' ? liveApiClient : Reflect.get(target, key, target),
  })
}

function toSink({ onmessage, onerror, onclose }: LiveCallbacks): SessionSink {
  return {
    onMessage: onmessage,
    // ADK throws what it is given here from `receive`, and looks at neither argument.
    onError: (error) => onerror?.(error as unknown as Parameters<typeof onerror>[0]),
    onClose: () => onclose?.({} as Parameters<typeof onclose>[0]),
  }
}
