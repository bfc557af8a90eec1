import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

import { times } from '../test/support/long-run.ts'
import { longTest } from '../test/support/long-test.ts'
import { openLine } from './support/line.ts'
import { measurePcm, syllables } from './support/make-wav.ts'
import { openVoiceTestPage, type VoiceTestPage } from './support/voice-test-page.ts'
import type { VoicePage } from './voice-page/main.ts'

const SILENCE = { hertz: 0, ms: 1_000 }
/** Somebody says something of a second, and then is silent for so long that they speak once in a test. */
const SPEECH = [{ hertz: 0, ms: 500 }, ...syllables(440, 1_000), { hertz: 0, ms: 60_000 }]
const LONG = `[[say ${'This is a long answer that takes its time. '.repeat(8)}]]`

type Library = Parameters<typeof openVoiceTestPage>[0]

const opened = new Map<Library, Promise<VoiceTestPage>>()

/** Opens the page of a library, which takes seconds to build, once for all tests. */
function openOnce(library: Library): Promise<VoiceTestPage> {
  const page = opened.get(library) ?? openVoiceTestPage(library)
  opened.set(library, page)
  return page
}

afterAll(async () => {
  for (const page of opened.values()) await (await page)[Symbol.asyncDispose]()
})

/** `npm test` builds one page. The package is also tested by test/pack. */
const LIBRARIES = ['source', 'package'] as const

describe.each(LIBRARIES.slice(0, times(1, 2)))('the %s', (library) => {
  let testDemo: VoiceTestPage
  beforeAll(async () => {
    testDemo = await openOnce(library)
  })
  afterEach(() => testDemo.leave())

  test('[VO1] [VO2] [VO3] [VO12] the model receives the speech unchanged, and its reply is played', async () => {
    testDemo.emulator.live.queueTranscript('[[say Good morning, Hanako.]]')
    const page = await testDemo.visit({ tones: SPEECH })
    await page.click('#start')
    await untilState(page, 'person-speaking')
    await untilState(page, 'model-speaking')
    await untilState(page, 'listening')
    const { hertz, level } = measurePcm(testDemo.heard())
    expect(Math.abs(hertz - 440)).toBeLessThanOrEqual(10)
    expect(level).toBeGreaterThan(0.05)
    // On a busy machine the end of the speech may come after a pause.
    await expect
      .poll(async () => (await look(page)).playback)
      .toMatchObject({ played: testDemo.spoken(), dropped: 0, buffered: 0 })
    await expect
      .poll(async () => (await look(page)).state)
      .toMatchObject({ transcript: { model: 'Good morning, Hanako.' } })
    const seen = await look(page)
    expect(testDemo.spoken()).toBeGreaterThan(24_000)
    expect(seen.loudest.output).toBeGreaterThan(0.02)
    expect(seen.loudest.input).toBeGreaterThan(0.05)
    await page.click('#stop')
    expect((await look(page)).state.state).toBe('off')
  })
})

describe('a voice', () => {
  let testDemo: VoiceTestPage
  beforeAll(async () => {
    testDemo = await openOnce('source')
  })
  afterEach(() => testDemo.leave())

  longTest('[VO4] speech of the person interrupts the playback', async () => {
    testDemo.emulator.live.queueTranscript('[[say Yes?]]')
    const tones = [{ hertz: 0, ms: 4_000 }, ...syllables(440, 1_000), { hertz: 0, ms: 5_000 }]
    const page = await testDemo.visit({ tones })
    await page.click('#start')
    await untilState(page, 'listening')
    await say(page, LONG)
    await untilState(page, 'model-speaking')
    await expect.poll(async () => (await look(page)).isSilenced).toBe(true)
    // It fell silent before half of the answer, which takes 30 seconds, was played.
    expect((await look(page)).playback.played).toBeLessThan(15 * 24_000)
    await expect
      .poll(async () => (await look(page)).state)
      .toMatchObject({ transcript: { model: 'Yes?' } })
  })

  test('[VO4] a button interrupts the playback', async () => {
    const page = await testDemo.visit({ tones: [SILENCE] })
    await page.click('#start')
    await untilState(page, 'listening')
    await say(page, LONG)
    await untilState(page, 'model-speaking')
    await page.click('#interrupt')
    await untilState(page, 'listening')
    await expect.poll(async () => (await look(page)).isSilenced).toBe(true)
    const { played } = (await look(page)).playback
    expect(played).toBeLessThan(15 * 24_000)
    await say(page, '[[say Another.]]')
    await untilState(page, 'model-speaking')
    await untilState(page, 'listening')
    expect((await look(page)).playback.played).toBeGreaterThan(played)
  })

  test('[VO9] with push-to-talk, what is said while the button is held gets a reply', async () => {
    testDemo.emulator.live.queueTranscript('[[say I heard you.]]')
    const page = await testDemo.visit({
      tones: syllables(440, 2_000),
      url: `${testDemo.url}/?push-to-talk`,
    })
    await page.click('#start')
    await untilState(page, 'listening')
    await evaluate(page, ({ voice, loudest }) => {
      loudest.input = 0
      voice.press()
    })
    await expect.poll(async () => (await look(page)).loudest.input).toBeGreaterThan(0.05)
    await evaluate(page, ({ voice }) => voice.release())
    await untilState(page, 'model-speaking')
    const words = async (): Promise<object> => (await look(page)).state
    await expect.poll(words).toMatchObject({ transcript: { model: 'I heard you.' } })
  })

  longTest('[VO11] a connection that is lost while the model speaks is restored', async () => {
    await using line = await openLine(testDemo.url)
    testDemo.emulator.live.queueTranscript('[[say Before.]] [[wait gate]] [[say And after that.]]')
    const page = await testDemo.visit({ tones: SPEECH, url: line.url })
    await page.click('#start')
    await untilState(page, 'model-speaking')
    await untilState(page, 'listening')
    const { played } = (await look(page)).playback
    line.cut()
    await expect.poll(async () => (await look(page)).state).toMatchObject({ connected: false })
    await expect.poll(async () => (await look(page)).state).toMatchObject({ connected: true })
    testDemo.emulator.release('gate')
    await untilState(page, 'model-speaking')
    await untilState(page, 'listening')
    expect((await look(page)).playback.played).toBeGreaterThan(played + 12_000)
  })

  longTest('[VO7] a microphone that is disconnected is reported', async () => {
    const page = await testDemo.visit({ tones: [SILENCE] })
    await page.evaluate(() => {
      const devices = navigator.mediaDevices
      const ask = devices.getUserMedia.bind(devices)
      devices.getUserMedia = async (constraints) => {
        const stream = await ask(constraints)
        const unplug = (): void => {
          for (const track of stream.getTracks()) track.dispatchEvent(new Event('ended'))
        }
        Object.assign(window, { unplug })
        return stream
      }
    })
    await page.click('#start')
    await untilState(page, 'listening')
    await page.evaluate('window.unplug()')
    await expect.poll(() => problemOf(page)).toBe('lost')
  })

  test('[VO7] a refused permission is reported', async () => {
    const page = await testDemo.visit({ tones: [SILENCE], person: 'refuses' })
    await page.click('#start')
    await expect.poll(() => problemOf(page)).toBe('permission-denied')
  })

  longTest('[VO7] a computer without a microphone is reported', async () => {
    const page = await testDemo.visit({})
    await page.click('#start')
    await expect.poll(() => problemOf(page)).toBe('no-microphone')
  })

  longTest('[VO7] an insecure page is reported', async () => {
    const page = await testDemo.visit({ url: testDemo.url.replace('127.0.0.1', 'voice.test') })
    await page.click('#start')
    await expect.poll(() => problemOf(page)).toBe('insecure-page')
  })
})

function evaluate(page: Page, act: (page: VoicePage) => void): Promise<void> {
  return page.evaluate(`(${String(act)})(window.page)`)
}

function say(page: Page, text: string): Promise<void> {
  return page.evaluate((said) => (window as unknown as { page: VoicePage }).page.say(said), text)
}

function problemOf(page: Page): Promise<string | undefined> {
  return page.evaluate(() => {
    const { state } = (window as unknown as { page: VoicePage }).page.voice
    return state.state === 'off' ? state.problem?.code : undefined
  })
}

/** What the page shows now. */
function look(page: Page) {
  return page.evaluate(() => {
    const { voice, loudest, isSilenced } = (window as unknown as { page: VoicePage }).page
    const { state, playback } = voice
    return { state, playback, loudest, isSilenced }
  })
}

async function untilState(page: Page, state: string): Promise<void> {
  await page.waitForFunction(
    (wanted) => (window as unknown as { page: VoicePage }).page.voice.state.state === wanted,
    state,
  )
}
