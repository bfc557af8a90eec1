import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'

import type { BrowserContextOptions, Page } from 'playwright-core'

import { chatPage } from './chat-page.ts'
import { microphoneFlags } from './launch-chromium.ts'
import { type Tone, writeWav } from './make-wav.ts'
import { captureAudio } from './page-audio.ts'
import type { TestDemo } from './test-demo.ts'

interface MicrophoneOptions extends BrowserContextOptions {
  /** The permission to use the microphone. Default `granted`. */
  readonly microphone?: 'granted' | 'denied'
}

/** Opens the page in live mode, with a microphone that plays these tones in a loop. */
export async function openWithMicrophone(
  testDemo: TestDemo,
  tones: readonly Tone[],
  { microphone, ...options }: MicrophoneOptions = {},
): Promise<Page> {
  const wav = join(await mkdtemp(join(testDemo.dataDir, 'wav-')), 'microphone.wav')
  await writeWav(wav, tones)
  const flags = microphoneFlags(wav, microphone)
  const page = await testDemo.openPage({ flags, mode: 'live', prepare: captureAudio, ...options })
  await chatPage(page).input.waitFor()
  return page
}

/** Returns how much the parts of the page have moved by themselves since it was loaded, as the score of the Layout Instability API. */
export function readLayoutShift(page: Page): Promise<number> {
  return page.evaluate(() => {
    interface LayoutShift extends PerformanceEntry {
      readonly value: number
      readonly hadRecentInput: boolean
    }
    const observer = new PerformanceObserver(() => undefined)
    observer.observe({ type: 'layout-shift', buffered: true })
    return (observer.takeRecords() as LayoutShift[])
      .filter(({ hadRecentInput }) => !hadRecentInput)
      .reduce((sum, { value }) => sum + value, 0)
  })
}

/** Returns the locators of the voice controls, and functions that wait for their states. */
export function voiceControls(page: Page) {
  const waitForStatus = (text: string) => page.getByRole('status').getByText(text).waitFor()
  const end = page.getByRole('button', { name: 'End the conversation' })
  return {
    holdToTalk: page.getByRole('button', { name: 'Hold to talk' }),
    handsFree: page.getByRole('button', { name: 'Talk hands-free' }),
    end,
    waitForStatus,
    /** Waits until the page detects the person's speech. */
    waitUntilHearing: () => waitForStatus('Hearing you…'),
    waitUntilSpeaking: () => waitForStatus('The assistant is speaking…'),
    waitUntilListening: () => waitForStatus('Listening…'),
    waitUntilOff: () => end.waitFor({ state: 'detached' }),
  }
}
