import { readSounds, type SpokenSound } from './read-sounds.ts'
import { rest } from './sounds.ts'
import { FRAME_SAMPLES, framesOf, synthesise } from './voice.ts'

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
