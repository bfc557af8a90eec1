import type { AudioDevices } from '../../../src/client/voice/index.ts'
import type {
  Microphone,
  MicrophoneOptions,
  Playback,
  Speaker,
  SpeakerOptions,
} from '../../../src/client/voice/audio-devices.ts'

/** A requested microphone: the person has not responded to the prompt of the browser yet. */
interface Prompt {
  readonly options: MicrophoneOptions
  allow(): Promise<FakeMicrophone>
  refuse(name: string): Promise<void>
}

class FakeMicrophone implements Microphone {
  readonly deviceId: string | undefined
  readonly #options: MicrophoneOptions
  muted = false
  closed = false

  constructor(options: MicrophoneOptions) {
    this.#options = options
    this.deviceId = options.deviceId
  }

  /** A tone of this length in ms, in frames of 20 ms. */
  speak(ms: number, amplitude = 8_000): void {
    for (let passed = 0; passed < ms; passed += 20) {
      const samples = Int16Array.from({ length: 320 }, (_zero, at) =>
        Math.round(amplitude * Math.sin(at / 5)),
      )
      this.#options.onSound(new Uint8Array(samples.buffer), (0.7 * amplitude) / 32_768)
    }
  }

  unplug(): void {
    this.#options.onLost()
  }

  /** The system silences the microphone, or no longer does. */
  silence(silenced: boolean): void {
    this.#options.onSilenced?.(silenced)
  }

  setMuted(muted: boolean): void {
    this.muted = muted
  }

  close(): void {
    this.closed = true
  }
}

class FakeSpeaker implements Speaker {
  readonly played: ArrayBuffer[] = []
  readonly #options: SpeakerOptions
  drops = 0
  closed = false

  constructor(options: SpeakerOptions) {
    this.#options = options
  }

  play(bytes: ArrayBuffer): void {
    this.played.push(bytes)
    this.report({ playing: true })
  }

  drop(): void {
    this.drops += 1
    this.report({ playing: false })
  }

  close(): void {
    this.closed = true
  }

  /** Reports this playback to the voice. */
  report(playback: Partial<Playback>): void {
    const nothing = { level: 0, played: 0, buffered: 0, dropped: 0, underruns: 0 }
    this.#options.onPlayback({ playing: false, ...nothing, ...playback })
  }

  /** The bytes that it has received. */
  get bytes(): number {
    return this.played.reduce((sum, { byteLength }) => sum + byteLength, 0)
  }
}

/** Devices whose permission prompts the test answers. */
export class FakeDevices implements AudioDevices {
  readonly prompts: Prompt[] = []
  readonly speakers: FakeSpeaker[] = []

  openMicrophone(options: MicrophoneOptions): Promise<Microphone> {
    return new Promise((resolve, reject) => {
      this.prompts.push({
        options,
        allow: async () => {
          const microphone = new FakeMicrophone(options)
          resolve(microphone)
          await settle()
          return microphone
        },
        refuse: async (name) => {
          reject(new DOMException('no', name))
          await settle()
        },
      })
    })
  }

  async openSpeaker(options: SpeakerOptions): Promise<Speaker> {
    const speaker = new FakeSpeaker(options)
    this.speakers.push(speaker)
    return speaker
  }

  /** Allows the microphone that was requested last. */
  allow(): Promise<FakeMicrophone> {
    const prompt = this.prompts.at(-1)
    if (!prompt) throw new Error('Nobody asked for a microphone.')
    return prompt.allow()
  }

  get speaker(): FakeSpeaker {
    const speaker = this.speakers.at(-1)
    if (!speaker) throw new Error('Nobody opened a speaker.')
    return speaker
  }
}

/** Resolves when all pending promise callbacks have run. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
