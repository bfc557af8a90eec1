import type { BaseLlmConnection, LlmRequest, LlmResponse } from '@google/adk'
import { BaseLlm } from '@google/adk'

export interface ConnectionHooks {
  /** Sees each live request before it connects. */
  readonly prepare: (request: LlmRequest) => void
  readonly onConnected: () => void
}

/** A model that tells of its live connections. */
export class LiveModel extends BaseLlm {
  readonly #inner: BaseLlm
  readonly #hooks: ConnectionHooks
  #connections = 0

  constructor(inner: BaseLlm, hooks: ConnectionHooks) {
    super({ model: inner.model })
    this.#inner = inner
    this.#hooks = hooks
  }

  override generateContentAsync(
    request: LlmRequest,
    stream?: boolean,
    signal?: AbortSignal,
  ): AsyncGenerator<LlmResponse, void> {
    return this.#inner.generateContentAsync(request, stream, signal)
  }

  override async connect(request: LlmRequest): Promise<BaseLlmConnection> {
    this.#hooks.prepare(request)
    const connection = await this.#inner.connect(request)
    this.#hooks.onConnected()
    this.#connections += 1
    if (this.#connections > 1) answerHistory(connection)
    return connection
  }
}

/** Lets an agent that a conversation was handed to answer what it was handed over with; a history alone asks for nothing. */
function answerHistory(connection: BaseLlmConnection): void {
  const send = connection.sendHistory.bind(connection)
  connection.sendHistory = async (history) => {
    const last = history.at(-1)
    await send(history.slice(0, -1))
    if (last) await connection.sendContent(last)
  }
}
