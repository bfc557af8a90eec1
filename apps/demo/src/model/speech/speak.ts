import { readSounds, type SpokenSound } from './read-sounds.ts'
import { rest, type Formants } from './sounds.ts'

/** Converts a text to speech: 24 kHz mono PCM, at most one minute. Deterministic. */
export function speak(text: string): Int16Array {
  return speakPieces([text])[0] ?? new Int16Array(0)
}

/** Converts the pieces of one text to speech. The joined audio equals that of `speak` for the whole text. */
export function speakPieces(pieces: readonly string[]): Int16Array[] {
  const sounds = withTail(readSounds(pieces.join(''), LONGEST_MS))
  const samples = toPcm(synthesise(sounds))
  const ends = pieceEnds(pieces)
  let from = 0
  let next = 0
  return ends.map((textEnd) => {
    let to = from
    // A sound belongs to the piece in which its letters start.
    for (let sound = sounds[next]; sound && sound.at < textEnd; sound = sounds[++next]) {
      to += framesOf(sound.ms) * FRAME_SAMPLES
    }
    const spoken = samples.slice(from, to)
    from = to
    return spoken
  })
}

/** Returns the end of each piece in the whole text. The last piece includes the tail. */
function pieceEnds(pieces: readonly string[]): number[] {
  let end = 0
  return pieces.map((piece, index) => {
    end += piece.length
    return index === pieces.length - 1 ? Infinity : end
  })
}

// The total with the last sound and the tail is below one minute.
const LONGEST_MS = 59_000
/** The fade-out of the last sound. */
const TAIL_MS = 60

function withTail(sounds: readonly SpokenSound[]): readonly SpokenSound[] {
  const last = sounds.at(-1)
  return last === undefined
    ? sounds
    : [...sounds, { ...last, ...rest(TAIL_MS), at: Number.MAX_SAFE_INTEGER }]
}

/** Half of full scale, −6 dBFS. */
const PEAK = 16_384

function toPcm(samples: Float32Array): Int16Array {
  let loudest = 0
  for (const sample of samples) loudest = Math.max(loudest, Math.abs(sample))
  const gain = loudest === 0 ? 0 : PEAK / loudest
  const pcm = new Int16Array(samples.length)
  for (const [index, sample] of samples.entries()) pcm[index] = Math.round(sample * gain)
  return pcm
}

const SAMPLE_RATE = 24_000
/** Five milliseconds. Formants change from frame to frame. */
const FRAME_SAMPLES = 120

/** Converts a duration to frames. */
function framesOf(ms: number): number {
  return Math.max(1, Math.round((ms * SAMPLE_RATE) / 1_000 / FRAME_SAMPLES))
}

/**
 * Synthesises the sounds: glottal pulses through resonators for the voice, noise through another one for fricatives.
 * All parameters are interpolated between sounds, which avoids clicks.
 */
function synthesise(sounds: readonly SpokenSound[]): Float32Array {
  const frames = sounds.reduce((sum, { ms }) => sum + framesOf(ms), 0)
  const samples = new Float32Array(frames * FRAME_SAMPLES)
  const throat = createThroat()
  let offset = 0
  for (const sound of sounds) {
    for (let frame = framesOf(sound.ms); frame > 0; frame -= 1) {
      glide(throat, sound)
      speakFrame(throat, samples.subarray(offset, offset + FRAME_SAMPLES))
      offset += FRAME_SAMPLES
    }
  }
  return samples
}

/** A two-pole resonator: y = gain·x + near·y₁ + far·y₂. */
interface Resonator {
  gain: number
  near: number
  far: number
  last: number
  beforeLast: number
}

interface Throat {
  readonly mouth: readonly [Resonator, Resonator, Resonator, Resonator]
  readonly teeth: Resonator
  /** A buffer for the noise of one frame. */
  readonly breath: Float32Array
  formants: Formants
  pitch: number
  hiss: number
  /** Amplitudes at the start and the end of the frame. */
  voice: [number, number]
  noise: [number, number]
  phase: number
  random: number
}

function createThroat(): Throat {
  const throat: Throat = {
    mouth: [resonator(), resonator(), resonator(), resonator()],
    teeth: resonator(),
    breath: new Float32Array(FRAME_SAMPLES),
    formants: [500, 1_500, 2_500],
    pitch: 150,
    hiss: 3_000,
    voice: [0, 0],
    noise: [0, 0],
    phase: 0,
    random: 1,
  }
  // The fourth formant is almost constant in speech.
  tune(throat.mouth[3], 3_600, 250)
  return throat
}

function resonator(): Resonator {
  return { gain: 1, near: 0, far: 0, last: 0, beforeLast: 0 }
}

function tune(target: Resonator, frequency: number, bandwidth: number): void {
  const decay = Math.exp((-Math.PI * bandwidth) / SAMPLE_RATE)
  target.far = -decay * decay
  target.near = 2 * decay * Math.cos((2 * Math.PI * frequency) / SAMPLE_RATE)
  target.gain = 1 - target.near - target.far
}

// How far formants and amplitudes move towards their targets within one frame.
const MOUTH_SPEED = 0.3
const STRENGTH_SPEED = 0.5
const INAUDIBLE = 1e-3
const BANDWIDTHS = [70, 100, 140] as const

function glide(throat: Throat, sound: SpokenSound): void {
  const [first, second, third] = throat.formants
  throat.formants = [
    towards(first, sound.formants[0], MOUTH_SPEED),
    towards(second, sound.formants[1], MOUTH_SPEED),
    towards(third, sound.formants[2], MOUTH_SPEED),
  ]
  throat.pitch = towards(throat.pitch, sound.pitch, MOUTH_SPEED)
  // The noise frequency changes only while the noise is silent or already has that frequency.
  throat.hiss = throat.noise[1] === 0 ? sound.hiss : towards(throat.hiss, sound.hiss, MOUTH_SPEED)
  throat.voice = [throat.voice[1], settle(throat.voice[1], sound.voice)]
  throat.noise = [throat.noise[1], settle(throat.noise[1], sound.noise)]
  tune(throat.mouth[0], throat.formants[0], BANDWIDTHS[0])
  tune(throat.mouth[1], throat.formants[1], BANDWIDTHS[1])
  tune(throat.mouth[2], throat.formants[2], BANDWIDTHS[2])
  tune(throat.teeth, throat.hiss, throat.hiss * 0.3)
}

function towards(from: number, to: number, speed: number): number {
  return from + (to - from) * speed
}

function settle(from: number, to: number): number {
  const next = towards(from, to, STRENGTH_SPEED)
  return next < INAUDIBLE ? 0 : next
}

const OPEN_SHARE = 0.6
const BREATH_LEVEL = 0.25

function speakFrame(throat: Throat, samples: Float32Array): void {
  const breath = throat.breath
  fillPulses(throat, samples)
  for (const each of throat.mouth) ring(each, samples)
  fillHiss(throat, breath)
  ring(throat.teeth, breath)
  for (let index = 0; index < samples.length; index += 1) {
    samples[index] = (samples[index] ?? 0) + BREATH_LEVEL * (breath[index] ?? 0)
  }
}

/** The derivative of the glottal flow. The glottis is open for a fraction of each period. */
function fillPulses(throat: Throat, samples: Float32Array): void {
  const step = throat.pitch / SAMPLE_RATE
  const [from, to] = throat.voice
  const rise = (to - from) / samples.length
  let phase = throat.phase
  for (let index = 0; index < samples.length; index += 1) {
    phase += step
    if (phase >= 1) phase -= 1
    const open = phase / OPEN_SHARE
    samples[index] = open < 1 ? open * (2 - 3 * open) * (from + rise * index) : 0
  }
  throat.phase = phase
}

/** White noise from the generator of Numerical Recipes. The same on every machine. */
function fillHiss(throat: Throat, samples: Float32Array): void {
  const [from, to] = throat.noise
  const rise = (to - from) / samples.length
  let random = throat.random
  for (let index = 0; index < samples.length; index += 1) {
    random = (Math.imul(random, 1_664_525) + 1_013_904_223) | 0
    samples[index] = (random / 2_147_483_648) * (from + rise * index)
  }
  throat.random = random
}

/** Filters the samples in place. */
function ring(target: Resonator, samples: Float32Array): void {
  const { gain, near, far } = target
  let { last, beforeLast } = target
  for (let index = 0; index < samples.length; index += 1) {
    const output = gain * (samples[index] ?? 0) + near * last + far * beforeLast
    beforeLast = last
    last = output
    samples[index] = output
  }
  // Avoids denormal numbers, which are slow.
  const isSilent = Math.abs(last) + Math.abs(beforeLast) < 1e-9
  target.last = isSilent ? 0 : last
  target.beforeLast = isSilent ? 0 : beforeLast
}
