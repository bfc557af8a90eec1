import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { times } from '../../../../test/support/long-run.ts'
import { speak, speakPieces } from '../../src/model/speech/speak.ts'

const RATE = 24_000
const seconds = (samples: Int16Array): number => samples.length / RATE
// Comparing bytes is a thousand times faster than comparing elements.
const bytes = (samples: Int16Array): Buffer =>
  Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength)
const peak = (samples: Int16Array): number =>
  samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0)
const rms = (samples: Int16Array): number =>
  Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length)

/** Strength of one frequency, by Goertzel's algorithm. */
function strength(samples: Int16Array, frequency: number): number {
  const turn = 2 * Math.cos((2 * Math.PI * frequency) / RATE)
  let [last, beforeLast] = [0, 0]
  for (const sample of samples) [last, beforeLast] = [sample + turn * last - beforeLast, last]
  return (
    Math.sqrt(last * last + beforeLast * beforeLast - turn * last * beforeLast) / samples.length
  )
}

/** Strength of a band, in steps narrower than the voice's harmonics. */
function band(samples: Int16Array, from: number, to: number): number {
  let sum = 0
  for (let frequency = from; frequency < to; frequency += 20)
    sum += strength(samples, frequency) ** 2
  return sum
}

/** The pitch in Hz, by autocorrelation. */
function pitch(samples: Int16Array): number {
  let best = { lag: 1, match: -Infinity }
  for (let lag = Math.round(RATE / 300); lag < RATE / 80; lag += 1) {
    let match = 0
    for (let at = 0; at + lag < samples.length; at += 1)
      match += (samples[at] ?? 0) * (samples[at + lag] ?? 0)
    if (match > best.match) best = { lag, match }
  }
  return RATE / best.lag
}

const middle = (samples: Int16Array): Int16Array =>
  samples.subarray(Math.floor(samples.length * 0.3), Math.floor(samples.length * 0.7))

const stepsOf = (samples: Int16Array): number[] =>
  Array.from(samples.subarray(1), (sample, index) => Math.abs(sample - (samples[index] ?? 0)))

const pitchesAround = (text: string): [number, number] => {
  const samples = speakPieces(['aaa', 'aaaaaa', 'aaa', text])
  return [pitch(samples[0] ?? new Int16Array(0)), pitch(samples[2] ?? new Int16Array(0))]
}

const noiseShare = (text: string): number => {
  const samples = middle(speak(text))
  return band(samples, 4_000, 8_000) / band(samples, 100, 8_000)
}

const SENTENCES = [
  'Hello core, how are you today?',
  'I sent thirty dollars to Alice. Your remaining balance is nine hundred and seventy.',
  'きょうのてんきはくもりです。',
  '花子さんに50ドルを送金しました。',
]

test.each(SENTENCES)(
  '[ED35] the speech of %j has its peak at −6 dBFS and is silent at both ends',
  (text) => {
    const samples = speak(text)
    expect(peak(samples)).toBe(16_384)
    expect(rms(samples)).toBeGreaterThan(1_500)
    expect(peak(samples.subarray(0, 24))).toBeLessThan(400)
    expect(peak(samples.subarray(-240))).toBeLessThan(20)
  },
)

test('[ED35] pauses are silent, and an empty text has no samples', () => {
  expect(speak('')).toHaveLength(0)
  expect(peak(speak(' … 。'))).toBe(0)
  const [, pause] = speakPieces(['ah', '. ', 'oh'])
  expect(peak((pause ?? new Int16Array(1)).subarray(-1_200))).toBeLessThan(20)
})

test.each(SENTENCES.slice(0, 2))(
  '[ED36] %j is spoken at 12 to 15 characters per second',
  (text) => {
    expect(text.length / seconds(speak(text))).toBeGreaterThan(12)
    expect(text.length / seconds(speak(text))).toBeLessThan(15)
  },
)

test.each([
  ['きょうのてんきはくもりです', 12],
  ['とうきょうはいいてんきでしたがっこう', 17],
  ['サンフランシスコタワー', 11],
  ['東京都庁', 8],
])('[ED36] %j is spoken at 7 to 8 morae per second', (text, morae) => {
  const withoutTail = seconds(speak(text)) - 0.06
  expect(morae / withoutTail).toBeGreaterThan(7)
  expect(morae / withoutTail).toBeLessThan(8)
})

test('[ED36] speech ends after a minute', () => {
  expect(seconds(speak('la '.repeat(40_000)))).toBeLessThanOrEqual(60)
  expect(speakPieces(['la '.repeat(40_000), 'la'])[1]?.length).toBeLessThan(RATE)
})

describe('sounds', () => {
  // The first and second formant, which distinguish vowels.
  const VOWELS: readonly [string, number, number][] = [
    ['あ', 760, 1_300],
    ['い', 300, 2_250],
    ['う', 340, 1_150],
    ['え', 520, 1_850],
    ['お', 480, 880],
  ]

  test.each(VOWELS)('[ED37] the vowel %s has its own spectrum', (kana, first, second) => {
    const likeness = (other: string): number => {
      const samples = middle(speak(`${other}ーー`))
      const share = (centre: number): number =>
        band(samples, centre - 120, centre + 120) / band(samples, 100, 4_000)
      return share(first) * share(second)
    }
    const others = VOWELS.filter(([each]) => each !== kana).map(([each]) => likeness(each))
    expect(likeness(kana)).toBeGreaterThan(1.2 * Math.max(...others))
  })

  test('[ED37] s is noise and m is voiced', () => {
    expect(noiseShare('ssss')).toBeGreaterThan(0.8)
    expect(noiseShare('mmmm')).toBeLessThan(0.05)
  })

  test('[ED38] the pitch falls at the end of a statement and rises at the end of a question', () => {
    const [statementStart, statementEnd] = pitchesAround('.')
    const [questionStart, questionEnd] = pitchesAround('？')
    expect(statementEnd).toBeLessThan(statementStart * 0.9)
    expect(questionEnd).toBeGreaterThan(questionStart * 1.1)
  })
})

test('[ED38] speech is deterministic', () => {
  for (const text of SENTENCES) expect(bytes(speak(text)).equals(bytes(speak(text)))).toBe(true)
})

test('[ED39] the joined pieces equal the speech of the whole text', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: 'grapheme', maxLength: 8 }), { maxLength: 6 }),
      (pieces) => {
        const spoken = speakPieces(pieces)
        expect(spoken).toHaveLength(pieces.length)
        const whole = pieces.length === 0 ? new Int16Array(0) : speak(pieces.join(''))
        expect(Buffer.concat(spoken.map(bytes)).equals(bytes(whole))).toBe(true)
      },
    ),
    { numRuns: times(15, 50) },
  )
})

test('[ED39] each piece has the audio of its words, without clicks', () => {
  const pieces = ['I ', 'sent ', '30 ', 'dollars ', 'to ', '花子', 'さん', '.']
  const spoken = speakPieces(pieces)
  for (const samples of spoken) expect(samples.length).toBeGreaterThan(0)
  const largest = stepsOf(speak(pieces.join(''))).reduce((most, step) => Math.max(most, step), 0)
  for (const [index, samples] of spoken.slice(1).entries()) {
    const seam = Math.abs((samples[0] ?? 0) - (spoken[index]?.at(-1) ?? 0))
    expect(seam).toBeLessThan(largest / 2)
  }
})
