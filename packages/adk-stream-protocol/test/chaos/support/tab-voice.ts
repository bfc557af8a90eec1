import { setTimeout as delay } from 'node:timers/promises'

import type { WebSocketTransport } from '../../../src/client/index.ts'
import { Voice } from '../../../src/client/voice/index.ts'
import { FakeDevices } from '../../voice/support/fake-devices.ts'
import { SILENT_FRAME, toFrame } from './utterances.ts'

const SPEECH_FRAMES = 30
const SILENT_FRAMES = 40
/** Frames that the microphone delivers at once, and the time that they take. */
const [BATCH, BATCH_MS] = [5, 100]
const LOUD_LEVEL = 0.2

/** The voice of a tab, with a microphone that the person allows. */
export class TabVoice {
  readonly #devices = new FakeDevices()
  readonly #voice: Voice
  #isClosed = false

  constructor(transport: WebSocketTransport, chatId: string) {
    this.#voice = new Voice({ transport, chatId, devices: this.#devices })
  }

  /** Says something, at the speed of speech. Starts the voice if it is off. */
  async speak(utterance: number): Promise<void> {
    if (!this.#isClosed && this.#voice.state.state === 'off') {
      const started = this.#voice.start()
      await this.#devices.allow()
      await started
    }
    const options = this.#devices.prompts.at(-1)?.options
    for (let index = 0; index < SPEECH_FRAMES + SILENT_FRAMES && !this.#isClosed; index += 1) {
      if (index < SPEECH_FRAMES) options?.onSound(toFrame(utterance, index), LOUD_LEVEL)
      else options?.onSound(SILENT_FRAME, 0)
      if (index % BATCH === BATCH - 1) await delay(BATCH_MS)
    }
  }

  stop(): void {
    this.#voice.stop()
  }

  /** Stops the voice with its tab. It does not start again. */
  close(): void {
    this.#isClosed = true
    this.#voice.stop()
  }

  toString(): string {
    return JSON.stringify(this.#voice.state)
  }
}
