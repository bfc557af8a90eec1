import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'

import { times } from '../test/support/long-run.ts'
import { longTest } from '../test/support/long-test.ts'
import { openBreakableProxy } from './support/breakable-proxy.ts'
import { measurePcm, syllables } from './support/make-wav.ts'
import { buildVoicePage, openVoiceTestPage, type VoiceTestPage } from './support/voice-test-page.ts'
import type { VoicePage } from './voice-page/main.ts'

const SILENCE = { hertz: 0, ms: 1_000 }
/** One second of speech, then a silence long enough that the loop does not repeat during a test. */
const SPEECH = [{ hertz: 0, ms: 500 }, ...syllables(440, 1_000), { hertz: 0, ms: 60_000 }]
const LONG_REPLY = `[[say ${'This is a long answer that takes its time. '.repeat(8)}]]`

type Library = Parameters<typeof buildVoicePage>[0]

const built = new Map<Library, ReturnType<typeof buildVoicePage>>()

/** Opens the page of a library. The page is built once for all tests, because that takes seconds. */
async function openLibraryPage(library: Library): Promise<VoiceTestPage> {
  const page = built.get(library) ?? buildVoicePage(library)
  built.set(library, page)
  return openVoiceTestPage((await page).path)
}

afterAll(async () => {
  for (const page of built.values()) await (await page)[Symbol.asyncDispose]()
})

/** `npm test` builds one page. The package is also tested by test/pack. */
const LIBRARIES = ['source', 'package'] as const

describe.each(LIBRARIES.slice(0, times(1, 2)))('the %s', (library) => {
  let testPage: VoiceTestPage
  beforeEach(async () => {
    testPage = await openLibraryPage(library)
  })
  afterEach(() => testPage[Symbol.asyncDispose]())

  longTest('[VO852] a voice that is started in another tab takes over', async () => {
    const page = await testPage.openPage({ tones: SPEECH })
    await page.click('#start')
    await waitForState(page, 'person-speaking')
    const opened = page.waitForEvent('popup')
    await page.evaluate(() => void open(location.href))
    const other = await opened
    await other.waitForLoadState()
    await other.click('#start')
    await waitForState(page, 'off')
    await page.click('#start')
    await waitForState(other, 'off')
  })

  test('[VO800] a microphone and a speaker that the browser suspends are resumed', async () => {
    const page = await testPage.openPage({ tones: SPEECH })
    await page.evaluate(() => {
      class CollectedContext extends AudioContext {
        constructor(options?: AudioContextOptions) {
          super(options)
          // The speaker sets its sample rate.
          const name = options?.sampleRate === undefined ? 'microphone' : 'speaker'
          Object.assign(window, { [name]: this })
        }
      }
      Object.assign(window, { AudioContext: CollectedContext })
    })
    await page.click('#start')
    await waitForState(page, 'person-speaking')
    for (const name of ['microphone', 'speaker']) {
      await page.evaluate((key) => (Reflect.get(window, key) as AudioContext).suspend(), name)
      await expect
        .poll(() => page.evaluate((key) => (Reflect.get(window, key) as AudioContext).state, name))
        .toBe('running')
    }
  })

  longTest(
    '[VO1] [VO2] [VO3] [VO12] the model receives the speech unchanged, and its reply is played',
    async () => {
      testPage.emulator.live.queueTranscript('[[say Good morning, Hanako.]]')
      const page = await testPage.openPage({ tones: SPEECH })
      await page.click('#start')
      await waitForState(page, 'person-speaking')
      await waitForState(page, 'model-speaking')
      await waitForState(page, 'listening')
      const { hertz, level } = measurePcm(testPage.receivedAudio())
      expect(Math.abs(hertz - 440)).toBeLessThanOrEqual(10)
      expect(level).toBeGreaterThan(0.05)
      // On a busy machine, the last audio may arrive after a pause.
      await expect
        .poll(async () => (await readVoice(page)).playback)
        .toMatchObject({ played: testPage.countSentSamples(), dropped: 0, buffered: 0 })
      await expect
        .poll(async () => (await readVoice(page)).state)
        .toMatchObject({ transcript: { model: 'Good morning, Hanako.' } })
      const seen = await readVoice(page)
      expect(testPage.countSentSamples()).toBeGreaterThan(24_000)
      expect(seen.loudest.output).toBeGreaterThan(0.02)
      expect(seen.loudest.input).toBeGreaterThan(0.05)
      await page.click('#stop')
      expect((await readVoice(page)).state.state).toBe('off')
    },
  )
})

describe('voice', () => {
  let testPage: VoiceTestPage
  beforeEach(async () => {
    testPage = await openLibraryPage('source')
  })
  afterEach(() => testPage[Symbol.asyncDispose]())

  longTest('[VO4] speech interrupts the playback', async () => {
    testPage.emulator.live.queueTranscript('[[say Yes?]]')
    const tones = [{ hertz: 0, ms: 4_000 }, ...syllables(440, 1_000), { hertz: 0, ms: 5_000 }]
    const page = await testPage.openPage({ tones })
    await page.click('#start')
    await waitForState(page, 'listening')
    await sendText(page, LONG_REPLY)
    await waitForState(page, 'model-speaking')
    await expect.poll(async () => (await readVoice(page)).isSilenced).toBe(true)
    // The playback stopped before half of the reply was played. The whole reply takes 30 seconds.
    expect((await readVoice(page)).playback.played).toBeLessThan(15 * 24_000)
    await expect
      .poll(async () => (await readVoice(page)).state)
      .toMatchObject({ transcript: { model: 'Yes?' } })
  })

  longTest('[VO4] a button interrupts the playback', async () => {
    const page = await testPage.openPage({ tones: [SILENCE] })
    await page.click('#start')
    await waitForState(page, 'listening')
    await sendText(page, LONG_REPLY)
    await waitForState(page, 'model-speaking')
    await page.click('#interrupt')
    await waitForState(page, 'listening')
    await expect.poll(async () => (await readVoice(page)).isSilenced).toBe(true)
    const { played } = (await readVoice(page)).playback
    expect(played).toBeLessThan(15 * 24_000)
    await sendText(page, '[[say Another.]]')
    await waitForState(page, 'model-speaking')
    await waitForState(page, 'listening')
    expect((await readVoice(page)).playback.played).toBeGreaterThan(played)
  })

  longTest('[VO9] with push-to-talk, speech while the button is held gets a reply', async () => {
    testPage.emulator.live.queueTranscript('[[say I heard you.]]')
    const page = await testPage.openPage({
      tones: syllables(440, 2_000),
      url: `${testPage.url}/?push-to-talk`,
    })
    await page.click('#start')
    await waitForState(page, 'listening')
    await evaluate(page, ({ voice, loudest }) => {
      loudest.input = 0
      voice.press()
    })
    await expect.poll(async () => (await readVoice(page)).loudest.input).toBeGreaterThan(0.05)
    await evaluate(page, ({ voice }) => voice.release())
    await waitForState(page, 'model-speaking')
    const state = async (): Promise<object> => (await readVoice(page)).state
    await expect.poll(state).toMatchObject({ transcript: { model: 'I heard you.' } })
  })

  longTest('[VO11] a connection that is lost while the model speaks is restored', async () => {
    await using proxy = await openBreakableProxy(testPage.url)
    testPage.emulator.live.queueTranscript('[[say Before.]] [[wait gate]] [[say And after that.]]')
    const page = await testPage.openPage({ tones: SPEECH, url: proxy.url })
    await page.click('#start')
    await waitForState(page, 'model-speaking')
    await waitForState(page, 'listening')
    const { played } = (await readVoice(page)).playback
    proxy.disconnect()
    await expect.poll(async () => (await readVoice(page)).state).toMatchObject({ connected: false })
    await expect.poll(async () => (await readVoice(page)).state).toMatchObject({ connected: true })
    testPage.emulator.release('gate')
    await waitForState(page, 'model-speaking')
    await waitForState(page, 'listening')
    expect((await readVoice(page)).playback.played).toBeGreaterThan(played + 12_000)
  })

  longTest('[VO7] a microphone that is disconnected is reported', async () => {
    const page = await testPage.openPage({ tones: [SILENCE] })
    await page.evaluate(() => {
      const devices = navigator.mediaDevices
      const getUserMedia = devices.getUserMedia.bind(devices)
      devices.getUserMedia = async (constraints) => {
        const stream = await getUserMedia(constraints)
        const unplug = (): void => {
          for (const track of stream.getTracks()) track.dispatchEvent(new Event('ended'))
        }
        Object.assign(window, { unplug })
        return stream
      }
    })
    await page.click('#start')
    await waitForState(page, 'listening')
    await page.evaluate('window.unplug()')
    await expect.poll(() => readProblem(page)).toBe('lost')
  })

  longTest('[VO7] a refused permission is reported', async () => {
    const page = await testPage.openPage({ tones: [SILENCE], microphone: 'denied' })
    await page.click('#start')
    await expect.poll(() => readProblem(page)).toBe('permission-denied')
  })

  longTest('[VO7] a computer without a microphone is reported', async () => {
    const page = await testPage.openPage({})
    await page.click('#start')
    await expect.poll(() => readProblem(page)).toBe('no-microphone')
  })

  longTest('[VO7] an insecure page is reported', async () => {
    const page = await testPage.openPage({ url: testPage.url.replace('127.0.0.1', 'voice.test') })
    await page.click('#start')
    await expect.poll(() => readProblem(page)).toBe('insecure-page')
  })
})

function evaluate(page: Page, run: (page: VoicePage) => void): Promise<void> {
  return page.evaluate(`(${String(run)})(window.page)`)
}

function sendText(page: Page, text: string): Promise<void> {
  return page.evaluate(
    (sent) => (window as unknown as { page: VoicePage }).page.sendText(sent),
    text,
  )
}

function readProblem(page: Page): Promise<string | undefined> {
  return page.evaluate(() => {
    const { state } = (window as unknown as { page: VoicePage }).page.voice
    return state.state === 'off' ? state.problem?.code : undefined
  })
}

/** Returns the state of the voice in the page. */
function readVoice(page: Page) {
  return page.evaluate(() => {
    const { voice, loudest, isSilenced } = (window as unknown as { page: VoicePage }).page
    const { state, playback } = voice
    return { state, playback, loudest, isSilenced }
  })
}

async function waitForState(page: Page, state: string): Promise<void> {
  await page.waitForFunction(
    (wanted) => (window as unknown as { page: VoicePage }).page.voice.state.state === wanted,
    state,
  )
}
