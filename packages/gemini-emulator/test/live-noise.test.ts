import { expect, test } from 'vitest'

import { createAutomaticEar } from '../src/live/ear.ts'
import { concatPcm } from '../src/live/pcm.ts'

const RATE = 16_000

/** Noise of a given loudness, always the same. */
function noise(seconds: number, loudness: number): Int16Array {
  let seed = 1
  return Int16Array.from({ length: RATE * seconds }, () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    return (seed / 2 ** 31 - 1) * loudness * Math.sqrt(3)
  })
}

/** Syllables of a voice over noise: five a second, as speech has them, with short gaps between. */
function talk(seconds: number, { loudness, over }: { loudness: number; over: number }): Int16Array {
  return noise(seconds, over).map((sample, at) => {
    const inSyllable = (at / RATE) % 0.2 < 0.15
    const voice = inSyllable ? Math.sin((at / RATE) * 2 * Math.PI * 180) * loudness * Math.SQRT2 : 0
    return sample + voice
  })
}

function listen(pieces: readonly Int16Array[]) {
  const ear = createAutomaticEar({ sampleRate: RATE, onsetMs: 40, silenceMs: 500 })
  return pieces.map((piece) => ear.listen(piece).map(({ type }) => type))
}

test('[EL58] a fan is taken for noise, and a voice above it is heard', () => {
  const [first, later, voice] = listen([
    noise(10, 1_000),
    noise(20, 1_000),
    concatPcm([talk(2, { loudness: 6_000, over: 1_000 }), noise(2, 1_000)]),
  ])
  // At first nobody can know.
  expect(first).toEqual(['speech-start', 'speech-end'])
  expect(later).toEqual([])
  expect(voice).toEqual(['speech-start', 'speech-end'])
})

test('[EL58] a quiet room is silent, and a long sentence stays one', () => {
  const [room, sentence] = listen([
    noise(30, 150),
    concatPcm([talk(20, { loudness: 2_500, over: 150 }), noise(1, 150)]),
  ])
  expect(room).toEqual([])
  expect(sentence).toEqual(['speech-start', 'speech-end'])
})
