import type { BaseLlmConnection, LlmRequest, LlmResponse } from '@google/adk'
import { BaseLlm } from '@google/adk'

/** A model that shows each live request to somebody before it connects. */
export class LiveModel extends BaseLlm {
  readonly #inner: BaseLlm
  readonly #prepare: (request: LlmRequest) => void

  constructor(inner: BaseLlm, prepare: (request: LlmRequest) => void) {
    super({ model: inner.model })
    this.#inner = inner
    this.#prepare = prepare
  }

  override generateContentAsync(
    request: LlmRequest,
    stream?: boolean,
    signal?: AbortSignal,
  ): AsyncGenerator<LlmResponse, void> {
    return this.#inner.generateContentAsync(request, stream, signal)
  }

  override async connect(request: LlmRequest): Promise<BaseLlmConnection> {
    this.#prepare(request)
    return this.#inner.connect(request)
  }
}
