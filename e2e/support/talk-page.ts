import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'

import type { BrowserContextOptions, Page } from 'playwright-core'

import { readPage } from './chat-page.ts'
import { listenTo } from './hear-page.ts'
import { microphoneFlags } from './launch-chromium.ts'
import { type Tone, writeWav } from './make-wav.ts'
import type { TestDemo } from './test-demo.ts'

interface TalkVisit extends BrowserContextOptions {
  readonly person?: 'allows' | 'refuses'
}

/** Opens the page in live mode, with somebody before the microphone who makes these tones, over and over. */
export async function visitToTalk(
  testDemo: TestDemo,
  tones: readonly Tone[],
  { person = 'allows', ...options }: TalkVisit = {},
): Promise<Page> {
  const wav = join(await mkdtemp(join(testDemo.dataDir, 'wav-')), 'microphone.wav')
  await writeWav(wav, tones)
  const flags = microphoneFlags(wav, person)
  const page = await testDemo.visit({ flags, mode: 'live', prepare: listenTo, ...options })
  await readPage(page).input.waitFor()
  return page
}

/** The voice of a page in a reader's words. */
export function readTalk(page: Page) {
  const until = (words: string) => page.getByRole('status').getByText(words).waitFor()
  const end = page.getByRole('button', { name: 'End the conversation' })
  return {
    hold: page.getByRole('button', { name: 'Hold to talk' }),
    handsFree: page.getByRole('button', { name: 'Talk hands-free' }),
    end,
    until,
    heard: () => until('Hearing you…'),
    speaking: () => until('The assistant is speaking…'),
    listening: () => until('Listening…'),
    off: () => end.waitFor({ state: 'detached' }),
  }
}
