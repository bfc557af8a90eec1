import { HEARD_RATE } from './resampler.ts'

/** Samples of a frame: 20 ms. */
const FRAME = HEARD_RATE / 50

/** Sound of any length in frames of 20 ms, 16 bit PCM. */
export class PcmFrames {
  #frame = new Int16Array(FRAME)
  #filled = 0
  readonly #onFrame: (bytes: Uint8Array<ArrayBuffer>, level: number) => void

  constructor(onFrame: (bytes: Uint8Array<ArrayBuffer>, level: number) => void) {
    this.#onFrame = onFrame
  }

  push(samples: Float32Array): void {
    for (const sample of samples) {
      this.#frame[this.#filled] = toInteger(sample)
      this.#filled += 1
      if (this.#filled === FRAME) this.#finish()
    }
  }

  #finish(): void {
    const frame = this.#frame
    this.#frame = new Int16Array(FRAME)
    this.#filled = 0
    this.#onFrame(new Uint8Array(frame.buffer), loudness(frame))
  }
}

function toInteger(sample: number): number {
  return Math.max(-32_768, Math.min(32_767, Math.round(sample * 32_768)))
}

/** The root of the mean square, from 0 to 1. */
function loudness(samples: Int16Array): number {
  let sum = 0
  for (const sample of samples) sum += sample * sample
  return Math.sqrt(sum / samples.length) / 32_768
}
