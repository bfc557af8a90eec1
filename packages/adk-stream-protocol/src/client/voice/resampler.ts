/** The sample rate of the audio that is sent to the model. */
export const INPUT_RATE = 16_000

/** Frequencies up to this part of half the lower rate pass unchanged. The filter fades over the next fifth, and removes what is above. */
const PASSED = 0.9
// Kaiser window for 60 dB: aliasing stays below the noise of any microphone.
const ATTENUATION = 60
const BETA = 0.1102 * (ATTENUATION - 8.7)

/**
 * Returns a function that converts audio from one sample rate to another while it arrives, with a windowed-sinc low-pass filter that is
 * evaluated only at the output samples. The result does not depend on the size of the pieces.
 */
export function createResampler(from: number, to: number): (samples: Float32Array) => Float32Array {
  const divisor = greatestDivisor(from, to)
  /** Output samples are at multiples of `step / phases` input samples. */
  const step = from / divisor
  const phases = to / divisor
  const { taps, filters } =
    from === to ? { taps: 1, filters: [Float32Array.of(1)] } : designFilters(from, to, phases)
  /** Input that is still needed. It starts with silence. */
  let held = new Float32Array(taps - 1)
  /** The position of the next output sample, in phases from the first sample in `held`. */
  let at = 0
  const sampleAt = (input: Float32Array): number => {
    const first = Math.floor(at / phases)
    const filter = filters[at % phases] ?? []
    let sum = 0
    for (let tap = 0; tap < taps; tap += 1) sum += (filter[tap] ?? 0) * (input[first + tap] ?? 0)
    return sum
  }
  return (samples) => {
    const input = join(held, samples)
    const room = (input.length - taps + 1) * phases - at
    const output = new Float32Array(Math.max(0, Math.ceil(room / step)))
    for (let index = 0; index < output.length; index += 1) {
      output[index] = sampleAt(input)
      at += step
    }
    const used = Math.min(Math.floor(at / phases), input.length)
    held = input.slice(used)
    at -= used * phases
    return output
  }
}

/** Creates a filter for each position between two input samples that an output sample can have. */
function designFilters(from: number, to: number, phases: number) {
  const edge = Math.min(1, to / from) / 2
  const width = 2 * (1 - PASSED) * edge
  const taps = 2 * Math.ceil((ATTENUATION - 8) / (4.57 * Math.PI * width) / 2)
  const filters = Array.from({ length: phases }, (_none, phase) => {
    const centre = taps / 2 - 1 + phase / phases
    const filter = Float32Array.from({ length: taps }, (_zero, tap) =>
      windowedSinc(tap - centre, edge, taps / 2),
    )
    // The weights of each filter add up to 1, so that the volume does not depend on the position.
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

function join(first: Float32Array, second: Float32Array): Float32Array<ArrayBuffer> {
  const all = new Float32Array(first.length + second.length)
  all.set(first)
  all.set(second, first.length)
  return all
}

/** The samples of a frame of 20 ms. */
const FRAME = INPUT_RATE / 50

/** Returns a function that cuts audio into frames of 20 ms, 16 bit PCM. */
export function cutFrames(
  onFrame: (bytes: Uint8Array<ArrayBuffer>, level: number) => void,
): (samples: Float32Array) => void {
  let frame = new Int16Array(FRAME)
  let filled = 0
  return (samples) => {
    for (const sample of samples) {
      frame[filled] = toInteger(sample)
      filled += 1
      if (filled < FRAME) continue
      const full = frame
      frame = new Int16Array(FRAME)
      filled = 0
      onFrame(new Uint8Array(full.buffer), loudness(full))
    }
  }
}

function toInteger(sample: number): number {
  return Math.max(-32_768, Math.min(32_767, Math.round(sample * 32_768)))
}

/** Returns the root mean square, from 0 to 1. */
function loudness(samples: Int16Array): number {
  let sum = 0
  for (const sample of samples) sum += sample * sample
  return Math.sqrt(sum / samples.length) / 32_768
}
