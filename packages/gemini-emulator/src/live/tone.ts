import { OUTPUT_RATE } from './plan-turn.ts'

/**
 * Takes the place of a voice: each letter is a short tone, everything else is silence. The audio lasts about as long as
 * speech: 75 ms for each letter, 130 ms for each Japanese character, at most one minute in total.
 */
export function synthesizeTone(pieces: readonly string[]): Int16Array[] {
  let left = 60 * OUTPUT_RATE
  return pieces.map((piece) => {
    const characters = Array.from(piece, readCharacter)
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

function readCharacter(character: string) {
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
