import type { BaseLlmConnection, LlmResponse } from '@google/adk'
import type { Blob, Content } from '@google/genai'

import { AUDIO_END } from './audio-end.ts'
import type { LastingSession } from './reconnecting-session.ts'

/** ADK's own connection on a session that lasts. */
export class LastingConnection implements BaseLlmConnection {
  readonly #adk: BaseLlmConnection
  readonly #session: LastingSession
  readonly #answersHistory: boolean

  constructor(
    adk: BaseLlmConnection,
    session: LastingSession,
    { answersHistory }: { readonly answersHistory: boolean },
  ) {
    this.#adk = adk
    this.#session = session
    this.#answersHistory = answersHistory
  }

  /** ADK would leave out calls and results, and let some models speak unasked: a history alone asks for nothing. */
  async sendHistory(history: Content[]): Promise<void> {
    const asked = this.#answersHistory ? history.at(-1) : undefined
    this.#session.sendHistory(asked ? history.slice(0, -1) : history)
    if (asked) await this.sendContent(asked)
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

  /** Breaks off what the model says, and says nothing in its place. */
  hush(): void {
    this.#session.hush()
  }

  async *receive(): AsyncGenerator<LlmResponse, void, void> {
    try {
      for await (const response of this.#adk.receive()) {
        const wanted = this.#withoutStaleCalls(response)
        if (wanted) yield wanted
      }
    } finally {
      // Whoever stops reading, in whatever way, is done with the connection; ADK 2.0.0 leaves it open on `return()`.
      this.#session.close()
    }
  }

  async close(): Promise<void> {
    this.#session.close()
  }

  /** A call that was taken back while it waited to be read, or outlived its connection, must not be run. */
  #withoutStaleCalls(response: LlmResponse): LlmResponse | undefined {
    const parts = response.content?.parts
    if (!parts?.some((part) => part.functionCall)) return response
    const kept = parts.filter(
      ({ functionCall }) => !functionCall || this.#session.admits(functionCall),
    )
    if (kept.length === parts.length) return response
    return kept.length === 0
      ? undefined
      : { ...response, content: { ...response.content, parts: kept } }
  }
}
