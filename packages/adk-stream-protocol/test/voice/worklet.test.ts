import { statSync } from 'node:fs'

import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { openProcessor, QUANTUM, SpeakerProbe } from './support/worklet.ts'

/** A tone of 200 Hz at 24 kHz. */
function tone(ms: number, from = 0): Int16Array {
  return Int16Array.from({ length: ms * 24 }, (_zero, at) =>
    Math.round(16_000 * Math.sin((2 * Math.PI * 200 * (from + at)) / 24_000)),
  )
}

/** The largest step between two samples: a click is a step that no tone makes. */
function largestStep(samples: readonly number[]): number {
  return samples.reduce(
    (largest, sample, at) => Math.max(largest, Math.abs(sample - (samples[at - 1] ?? 0))),
    0,
  )
}

const TONE_STEP = 0.03

/** Not an assertion for each of a quarter of a million samples. */
function isClose(sample: number | undefined, expected: number): boolean {
  return sample !== undefined && Math.abs(sample - expected) < 5e-7
}

test('[VO2] the microphone passes on every sample, in buffers that are transferred and not copied', async () => {
  const processor = await openProcessor('adk-microphone', { frameSamples: 882 })
  for (let at = 0; at < 70; at += 1) {
    const input = Float32Array.from({ length: QUANTUM }, (_zero, index) => at * QUANTUM + index)
    expect(processor.process([[input]], [])).toBe(true)
  }
  // A device that is briefly unavailable delivers nothing.
  expect(processor.process([[]], [])).toBe(true)
  const { posted } = processor.port
  const samples = posted.flatMap(({ message }) => [...(message as Float32Array)])
  expect(posted).toHaveLength(Math.floor((70 * QUANTUM) / 882))
  expect(samples).toEqual(Array.from({ length: samples.length }, (_none, index) => index))
  for (const { message, transferred } of posted)
    expect(transferred).toEqual([(message as Float32Array).buffer])
})

test('[VO3] audio that arrives in pieces is played completely and without gaps', async () => {
  const whole = tone(500)
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 3_000 }), { maxLength: 10 }),
      async (cuts) => {
        const speaker = await SpeakerProbe.open()
        let at = 0
        for (const cut of [...cuts, whole.length]) {
          speaker.add(whole.slice(at, at + cut))
          at += cut
        }
        const heard = speaker.run(1_000)
        const first = heard.findIndex((sample) => sample !== 0) - 1
        // The first 5 ms fade in.
        const wrong = whole
          .subarray(200)
          .findIndex((sample, index) => !isClose(heard[first + 200 + index], sample / 32_768))
        expect(wrong).toBe(-1)
        expect(speaker.playback).toMatchObject({
          playing: false,
          played: whole.length,
          buffered: 0,
          underruns: 0,
          dropped: 0,
        })
      },
    ),
    { numRuns: 20 },
  )
})

test('[VO3] playback starts with a small buffer; a short word is not delayed', async () => {
  const speaker = await SpeakerProbe.open()
  speaker.add(tone(20))
  expect(Math.max(...speaker.run(40))).toBe(0)
  expect(Math.max(...speaker.run(80))).toBeGreaterThan(0.4)
  const other = await SpeakerProbe.open()
  other.add(tone(100))
  expect(Math.max(...other.run(20))).toBeGreaterThan(0.4)
})

test('[VO3] audio that arrives too late is counted, and the gap causes no click', async () => {
  const speaker = await SpeakerProbe.open()
  speaker.add(tone(101))
  speaker.run(150)
  expect(speaker.playback?.playing).toBe(true)
  speaker.add(tone(200, 1_234))
  speaker.run(150)
  expect(speaker.playback).toMatchObject({ playing: true, underruns: 1 })
  speaker.run(600)
  expect(speaker.playback).toMatchObject({ playing: false, played: 301 * 24 })
  expect(largestStep(speaker.heard)).toBeLessThan(TONE_STEP)
  expect(speaker.reports.filter(({ playing }) => !playing)).toHaveLength(1)
})

test('[VO3] playback is reported with its level, and silence is not reported', async () => {
  const speaker = await SpeakerProbe.open()
  speaker.run(500)
  expect(speaker.reports).toEqual([])
  speaker.add(tone(500))
  speaker.run(300)
  expect(speaker.playback?.level).toBeCloseTo(16_000 / 32_768 / Math.SQRT2, 1)
  speaker.run(1_000)
  const { length } = speaker.reports
  speaker.run(1_000)
  expect(speaker.reports).toHaveLength(length)
})

test('[VO4] dropped audio ends within 10 ms without a click, and what follows is played', async () => {
  const speaker = await SpeakerProbe.open()
  speaker.add(tone(2_000))
  speaker.run(300)
  speaker.drop()
  const after = speaker.run(50)
  expect(after.slice(240).every((sample) => sample === 0)).toBe(true)
  expect(largestStep(speaker.heard)).toBeLessThan(TONE_STEP)
  const { played = 0, dropped = 0 } = speaker.playback ?? {}
  expect(speaker.playback).toMatchObject({ playing: false, buffered: 0 })
  expect(played + dropped).toBe(48_000)
  speaker.add(tone(200))
  speaker.run(500)
  expect(speaker.playback?.played).toBe(played + 200 * 24)
})

test('[VO4] audio right after a drop is played, and nothing from before it', async () => {
  const speaker = await SpeakerProbe.open()
  speaker.add(tone(2_000))
  speaker.run(300)
  speaker.drop()
  speaker.add(new Int16Array(2_400).fill(3_277))
  speaker.run(20)
  const heard = speaker.run(60)
  expect(heard.at(-1)).toBeCloseTo(0.1, 3)
  expect(largestStep(speaker.heard)).toBeLessThan(TONE_STEP)
})

test('[VO5] audio over the buffer limit is dropped and counted', async () => {
  const speaker = await SpeakerProbe.open(24_000)
  for (let second = 0; second < 60; second += 1) speaker.add(tone(1_000))
  speaker.run(2_000)
  expect(speaker.playback).toMatchObject({ played: 24_000, dropped: 59 * 24_000 })
})

test('[VO1] the worklet is too large for bundlers to put it into the page, which policies forbid', () => {
  const file = new URL('../../src/client/voice/voice-worklet.js', import.meta.url)
  // Vite's `assetsInlineLimit`, with room for what the compiler leaves out.
  expect(statSync(file).size).toBeGreaterThan(5_500)
})
