import type { BaseLlmConnection, LlmResponse } from '@google/adk'
import type { Blob, Content } from '@google/genai'

import type { ReconnectingLiveSession } from './reconnecting-session.ts'

/**
 * Marks the end of an audio stream. ADK's `LiveRequestQueue` has no request for it, and a message sent past the queue would overtake the
 * audio in it. So this empty chunk goes through the queue instead.
 */
export const AUDIO_END: Blob = Object.freeze({ mimeType: 'audio/pcm', data: '' })

/** Wraps ADK's own connection over a `ReconnectingLiveSession`. */
export class ReconnectingLiveConnection implements BaseLlmConnection {
  readonly #adk: BaseLlmConnection
  readonly #session: ReconnectingLiveSession
  readonly #repliesToHistory: boolean

  constructor(
    adk: BaseLlmConnection,
    session: ReconnectingLiveSession,
    { repliesToHistory }: { readonly repliesToHistory: boolean },
  ) {
    this.#adk = adk
    this.#session = session
    this.#repliesToHistory = repliesToHistory
  }

  /** Sends a history without requesting a reply. ADK would drop calls and results, and some models would speak at once. */
  async sendHistory(history: Content[]): Promise<void> {
    const prompt = this.#repliesToHistory ? history.at(-1) : undefined
    this.#session.sendHistory(prompt ? history.slice(0, -1) : history)
    if (prompt) await this.sendContent(prompt)
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

  /** Interrupts the model's speech without requesting a reply. */
  interrupt(): void {
    this.#session.interrupt()
  }

  async *receive(): AsyncGenerator<LlmResponse, void, void> {
    try {
      for await (const response of this.#adk.receive()) {
        const valid = this.#withoutStaleCalls(response)
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

  /** Removes calls that the model cancelled, or whose session closed, while they waited in ADK's queue. They must not run. */
  #withoutStaleCalls(response: LlmResponse): LlmResponse | undefined {
    const parts = response.content?.parts
    if (!parts?.some((part) => part.functionCall)) return response
    const kept = parts.filter(
      ({ functionCall }) => !functionCall || this.#session.acceptCall(functionCall),
    )
    if (kept.length === parts.length) return response
    return kept.length === 0
      ? undefined
      : { ...response, content: { ...response.content, parts: kept } }
  }
}
