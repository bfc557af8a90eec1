import type { LiveEvent } from '../../../src/client/index.ts'
import type { LiveListener } from '../../../src/client/socket/chat-subscriptions.ts'
import type { VoiceTransport } from '../../../src/client/voice/voice.ts'

/** A transport that records its calls. */
export class FakeTransport implements VoiceTransport {
  readonly said: string[] = []
  readonly sounds: Uint8Array[] = []
  readonly #listeners = new Set<LiveListener>()
  open = true

  watch(chatId: string, listener?: LiveListener, options?: { audio?: string }): () => void {
    this.said.push(`watch ${chatId} ${options?.audio}`)
    if (listener) this.#listeners.add(listener)
    return () => {
      this.said.push(`leave ${chatId}`)
      if (listener) this.#listeners.delete(listener)
    }
  }

  sendAudio(bytes: Uint8Array<ArrayBuffer>): boolean {
    if (this.open) this.sounds.push(bytes)
    return this.open
  }

  endAudio(chatId: string): void {
    this.said.push(`audio-end ${chatId}`)
  }

  interrupt(chatId: string): void {
    this.said.push(`interrupt ${chatId}`)
  }

  tell(...events: LiveEvent[]): void {
    for (const event of events) for (const listener of this.#listeners) listener(event)
  }

  /** The length of the audio that was sent, in ms. */
  get soundMs(): number {
    return this.sounds.reduce((sum, { length }) => sum + length, 0) / 32
  }
}
