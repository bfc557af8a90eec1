import { expect, test } from 'vitest'

import { concatPcm } from '../src/live/audio.ts'
import { createAutomaticSegmenter } from '../src/live/audio-input.ts'

const RATE = 16_000

/** Returns deterministic noise with a given level. */
function noise(seconds: number, loudness: number): Int16Array {
  let seed = 1
  return Int16Array.from({ length: RATE * seconds }, () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    return (seed / 2 ** 31 - 1) * loudness * Math.sqrt(3)
  })
}

/** Returns five syllables per second with short gaps, over noise. */
function talk(seconds: number, { loudness, over }: { loudness: number; over: number }): Int16Array {
  return noise(seconds, over).map((sample, at) => {
    const inSyllable = (at / RATE) % 0.2 < 0.15
    const voice = inSyllable ? Math.sin((at / RATE) * 2 * Math.PI * 180) * loudness * Math.SQRT2 : 0
    return sample + voice
  })
}

function detect(pieces: readonly Int16Array[]) {
  const segmenter = createAutomaticSegmenter({ sampleRate: RATE, onsetMs: 40, silenceMs: 500 })
  return pieces.map((piece) => segmenter.push(piece).map(({ type }) => type))
}

test('[EL58] a fan is classified as noise, and a voice above it is detected', () => {
  const [first, later, voice] = detect([
    noise(10, 1_000),
    noise(20, 1_000),
    concatPcm([talk(2, { loudness: 6_000, over: 1_000 }), noise(2, 1_000)]),
  ])
  // The noise level is unknown at first.
  expect(first).toEqual(['speech-start', 'speech-end'])
  expect(later).toEqual([])
  expect(voice).toEqual(['speech-start', 'speech-end'])
})

test('[EL58] a quiet room is silent, and a long sentence is one utterance', () => {
  const [room, sentence] = detect([
    noise(30, 150),
    concatPcm([talk(20, { loudness: 2_500, over: 150 }), noise(1, 150)]),
  ])
  expect(room).toEqual([])
  expect(sentence).toEqual(['speech-start', 'speech-end'])
})
