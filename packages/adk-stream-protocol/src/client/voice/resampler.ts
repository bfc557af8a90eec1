/** The rate that the model hears. */
export const HEARD_RATE = 16_000

/** The part of the band that is kept whole, up to the half of the lower rate; what lies above 2 − this is gone. */
const PASSED = 0.9
// Kaiser's window for 60 dB: what folds back is below the noise of any microphone.
const ATTENUATION = 60
const BETA = 0.1102 * (ATTENUATION - 8.7)

/**
 * Brings sound from one rate to another, as it comes: a low-pass of windowed sinc, computed only where a sample is needed. How
 * the sound is cut into pieces changes nothing.
 */
export class Resampler {
  /** Output samples are at multiples of `#step / #phases` input samples. */
  readonly #step: number
  readonly #phases: number
  readonly #taps: number
  readonly #filters: readonly Float32Array[]
  /** Input that is still needed; it begins `#taps` before the first sample with silence. */
  #held: Float32Array
  /** Where the next output is, in phases from the first sample held. */
  #at = 0

  constructor(from: number, to: number) {
    const divisor = greatestDivisor(from, to)
    this.#step = from / divisor
    this.#phases = to / divisor
    const { taps, filters } = designFilters(from, to, this.#phases)
    this.#taps = from === to ? 1 : taps
    this.#filters = from === to ? [Float32Array.of(1)] : filters
    this.#held = new Float32Array(this.#taps - 1)
  }

  push(samples: Float32Array): Float32Array {
    const input = join(this.#held, samples)
    const room = (input.length - this.#taps + 1) * this.#phases - this.#at
    const output = new Float32Array(Math.max(0, Math.ceil(room / this.#step)))
    for (let index = 0; index < output.length; index += 1) {
      output[index] = this.#sampleAt(input)
      this.#at += this.#step
    }
    const used = Math.min(Math.floor(this.#at / this.#phases), input.length)
    this.#held = input.slice(used)
    this.#at -= used * this.#phases
    return output
  }

  #sampleAt(input: Float32Array): number {
    const first = Math.floor(this.#at / this.#phases)
    const filter = this.#filters[this.#at % this.#phases] ?? []
    let sum = 0
    for (let tap = 0; tap < this.#taps; tap += 1) {
      sum += (filter[tap] ?? 0) * (input[first + tap] ?? 0)
    }
    return sum
  }
}

/** A filter for each place between two input samples at which an output sample can lie. */
function designFilters(from: number, to: number, phases: number) {
  const edge = Math.min(1, to / from) / 2
  const width = 2 * (1 - PASSED) * edge
  const taps = 2 * Math.ceil((ATTENUATION - 8) / (4.57 * Math.PI * width) / 2)
  const filters = Array.from({ length: phases }, (_none, phase) => {
    const centre = taps / 2 - 1 + phase / phases
    const filter = Float32Array.from({ length: taps }, (_zero, tap) =>
      windowedSinc(tap - centre, edge, taps / 2),
    )
    // Rounded edges would make some places louder than others.
    const sum = filter.reduce((total, weight) => total + weight, 0)
    return filter.map((weight) => weight / sum)
  })
  return { taps, filters }
}

function windowedSinc(distance: number, edge: number, half: number): number {
  const x = 2 * edge * distance
  const sinc = x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x)
  const inside = 1 - (distance / half) ** 2
  return inside <= 0 ? 0 : sinc * bessel(BETA * Math.sqrt(inside))
}

/** The modified Bessel function of order 0, by its series. */
function bessel(x: number): number {
  let sum = 1
  let term = 1
  for (let k = 1; term > sum * 1e-9; k += 1) {
    term *= (x / (2 * k)) ** 2
    sum += term
  }
  return sum
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b)
}

function join(first: Float32Array, second: Float32Array): Float32Array {
  const all = new Float32Array(first.length + second.length)
  all.set(first)
  all.set(second, first.length)
  return all
}
