import type { LiveEvent } from '../../../src/client/index.ts'
import type { LiveListener } from '../../../src/client/socket/watched-chats.ts'
import type { VoiceTransport } from '../../../src/client/voice/voice.ts'

/** A transport that records its calls. */
export class FakeTransport implements VoiceTransport {
  /** The calls except `sendAudio`, as text. */
  readonly calls: string[] = []
  /** The audio that was sent. */
  readonly sent: Uint8Array[] = []
  readonly #listeners = new Set<LiveListener>()
  open = true

  watch(chatId: string, listener?: LiveListener, options?: { audio?: string }): () => void {
    this.calls.push(`watch ${chatId} ${options?.audio}`)
    if (listener) this.#listeners.add(listener)
    return () => {
      this.calls.push(`leave ${chatId}`)
      if (listener) this.#listeners.delete(listener)
    }
  }

  sendAudio(bytes: Uint8Array<ArrayBuffer>): boolean {
    if (this.open) this.sent.push(bytes)
    return this.open
  }

  endAudio(chatId: string): void {
    this.calls.push(`audio-end ${chatId}`)
  }

  interrupt(chatId: string): void {
    this.calls.push(`interrupt ${chatId}`)
  }

  /** Calls the listeners, as if the server had sent these events. */
  emit(...events: LiveEvent[]): void {
    for (const event of events) for (const listener of this.#listeners) listener(event)
  }

  /** The length of the audio that was sent, in ms. */
  get sentMs(): number {
    return this.sent.reduce((sum, { length }) => sum + length, 0) / 32
  }
}
