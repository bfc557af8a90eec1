import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { times } from '../../../../test/support/long-run.ts'
import { createResampler, cutFrames, INPUT_RATE } from '../../src/client/voice/resampler.ts'

const RATES = [8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 88_200, 96_000]

function tone(hertz: number, rate: number, seconds = 0.25): Float32Array {
  const length = Math.round(rate * seconds)
  return Float32Array.from({ length }, (_zero, at) => Math.sin((2 * Math.PI * hertz * at) / rate))
}

/** The level of the middle part, relative to that of the original sine: 1 is equal. */
function amplitude(samples: Float32Array): number {
  const middle = samples.slice(samples.length / 4, (3 * samples.length) / 4)
  const power = middle.reduce((sum, sample) => sum + sample * sample, 0) / middle.length
  return Math.sqrt(2 * power)
}

/** The share of a frequency in the samples. */
function share(samples: Float32Array, hertz: number, rate: number): number {
  const middle = samples.slice(samples.length / 4, (3 * samples.length) / 4)
  let [real, imaginary] = [0, 0]
  for (const [at, sample] of middle.entries()) {
    real += sample * Math.cos((2 * Math.PI * hertz * at) / rate)
    imaginary += sample * Math.sin((2 * Math.PI * hertz * at) / rate)
  }
  return (2 * Math.hypot(real, imaginary)) / middle.length
}

const decibels = (ratio: number): number => 20 * Math.log10(ratio)

test.each(RATES)('[VO2] from %i Hz, audible frequencies keep their level and pitch', (rate) => {
  const highest = Math.min(rate, INPUT_RATE) * 0.44
  fc.assert(
    fc.property(fc.double({ min: 100, max: highest, noNaN: true }), (hertz) => {
      const heard = createResampler(rate, INPUT_RATE)(tone(hertz, rate))
      expect(Math.abs(decibels(amplitude(heard)))).toBeLessThan(0.5)
      expect(share(heard, hertz, INPUT_RATE)).toBeGreaterThan(0.9)
    }),
    { numRuns: times(6, 20) },
  )
})

test.each(RATES.filter((rate) => rate > 20_000))(
  '[VO2] from %i Hz, frequencies above the limit cause no aliasing',
  (rate) => {
    fc.assert(
      fc.property(fc.double({ min: 8_900, max: rate / 2, noNaN: true }), (hertz) => {
        const heard = createResampler(rate, INPUT_RATE)(tone(hertz, rate))
        expect(decibels(amplitude(heard) + 1e-9)).toBeLessThan(-55)
      }),
      { numRuns: times(6, 20) },
    )
  },
)

test('[VO2] the result does not depend on the size of the pieces', () => {
  const cuts = fc.array(fc.integer({ min: 0, max: 700 }), { maxLength: 20 })
  fc.assert(
    fc.property(fc.constantFrom(...RATES), cuts, (rate, lengths) => {
      const samples = tone(1_000, rate, 0.05)
      const whole = createResampler(rate, INPUT_RATE)(samples)
      const resample = createResampler(rate, INPUT_RATE)
      let at = 0
      const pieces = [...lengths, Infinity].map((length) => {
        const piece = samples.subarray(at, at + length)
        at += piece.length
        return resample(piece)
      })
      expect(pieces.flatMap((piece) => [...piece])).toEqual([...whole])
      expect(Math.abs(whole.length - INPUT_RATE * 0.05)).toBeLessThan(2)
    }),
    { numRuns: times(20, 50) },
  )
})

test('[VO2] frames are 20 ms of 16 bit little-endian PCM, and clip instead of overflowing', () => {
  const frames: { bytes: Uint8Array; level: number }[] = []
  const push = cutFrames((bytes, level) => frames.push({ bytes, level }))
  push(new Float32Array(300).fill(0.5))
  expect(frames).toEqual([])
  push(new Float32Array(400).fill(0.5))
  push(Float32Array.from({ length: 300 }, (_zero, at) => (at % 2 === 0 ? 1.5 : -1.5)))
  expect(frames.map(({ bytes }) => bytes.length)).toEqual([640, 640, 640])
  expect(frames[0]?.bytes.slice(0, 2)).toEqual(Uint8Array.of(0x00, 0x40))
  expect(frames[0]?.level).toBeCloseTo(0.5)
  const last = new DataView(frames[2]?.bytes.buffer as ArrayBuffer)
  expect([last.getInt16(636, true), last.getInt16(638, true)]).toEqual([32_767, -32_768])
})
