/** The sample rate of the model's speech. */
export const OUTPUT_RATE = 24_000

/** Decodes base64 of signed 16-bit little-endian samples. Ignores an incomplete last sample. */
export function decodePcm(base64: string): Int16Array {
  const bytes = Buffer.from(base64, 'base64')
  const samples = new Int16Array(bytes.length >> 1)
  for (let index = 0; index < samples.length; index++) samples[index] = bytes.readInt16LE(index * 2)
  return samples
}

export function encodePcm(samples: Int16Array): string {
  return Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength).toString('base64')
}

/** Returns the rate in `audio/pcm;rate=16000`, 16000 by default, or `undefined` if the type is not PCM. */
export function readSampleRate(mimeType: string | undefined): number | undefined {
  if (mimeType === undefined) return 16_000
  if (!/^audio\/(pcm|l16)\b/i.test(mimeType)) return undefined
  return Number(/rate=(\d+)/.exec(mimeType)?.[1] ?? 16_000)
}

export function concatPcm(pieces: readonly Int16Array[]): Int16Array<ArrayBuffer> {
  const all = new Int16Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    all.set(piece, at)
    at += piece.length
  }
  return all
}

/**
 * Takes the place of a voice: each letter is a short tone, everything else is silence. The audio lasts about as long as
 * speech: 75 ms for each letter, 130 ms for each Japanese character, at most one minute in total.
 */
export function synthesizeTone(pieces: readonly string[]): Int16Array[] {
  let left = 60 * OUTPUT_RATE
  return pieces.map((piece) => {
    const characters = Array.from(piece, measureCharacter)
    const length = characters.reduce((sum, character) => sum + character.length, 0)
    const samples = new Int16Array(Math.min(left, length))
    left -= samples.length
    let at = 0
    for (const character of characters) {
      if (character.isAudible) writeTone(samples.subarray(at, at + character.length))
      at += character.length
    }
    return samples
  })
}

function measureCharacter(character: string) {
  const ms = WIDE.test(character) ? 130 : 75
  return { length: (OUTPUT_RATE * ms) / 1000, isAudible: /[\p{L}\p{N}]/u.test(character) }
}

/** Fades in and out, so that adjacent tones join without a click. */
function writeTone(samples: Int16Array): void {
  for (let index = 0; index < samples.length; index++) {
    const envelope = Math.sin((Math.PI * index) / samples.length)
    samples[index] = PEAK * envelope * Math.sin((2 * Math.PI * PITCH_HZ * index) / OUTPUT_RATE)
  }
}

const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u
const PITCH_HZ = 220
/** Half of full scale, −6 dBFS. */
const PEAK = 16_384
