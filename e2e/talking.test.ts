import { join } from 'node:path'

import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

import { temporaryDirectory } from '../apps/demo/test/support/temporary-directory.ts'
import { readPage } from './support/chat-page.ts'
import { microphoneFlags } from './support/launch-chromium.ts'
import { syllables, writeWav } from './support/make-wav.ts'
import { chooseMode } from './support/shell-page.ts'
import { openWorld, type World } from './support/world.ts'

/** Somebody says something of a second, and then is silent for four. */
const SPEECH = [{ hertz: 0, ms: 500 }, ...syllables(440, 1_000), { hertz: 0, ms: 4_000 }]
const LONG = `[[say ${'This is a long answer that takes its time. '.repeat(8)}]]`

let world: World
let directory: Awaited<ReturnType<typeof temporaryDirectory>>
beforeAll(async () => {
  directory = await temporaryDirectory()
  const wav = join(directory.path, 'speech.wav')
  await writeWav(wav, SPEECH)
  world = await openWorld({}, { flags: microphoneFlags(wav), live: { playback: 'real-time' } })
})
afterAll(async () => {
  await world[Symbol.asyncDispose]()
  await directory[Symbol.asyncDispose]()
})
afterEach(() => world.leave())

test('[DM48] what is said is answered aloud, and both are written in the conversation', async () => {
  world.emulator.live.hear('[[say Good morning, Hanako.]]')
  const page = await world.visit()
  const { answer, log } = readPage(page)
  await chooseMode(page, 'ADK · Live')
  await page.getByRole('button', { name: 'Talk hands-free' }).click()
  await page.locator('.talk[data-state=person-speaking]').waitFor()
  await page.locator('.talk[data-state=model-speaking]').waitFor()
  await page.locator('.caption-model').getByText('Good morning, Hanako.').waitFor()
  await answer().getByText('Good morning, Hanako.').waitFor()
  expect(await log.locator('[data-role=user]').textContent()).toContain('Good morning')
  await page.getByRole('button', { name: 'End the conversation' }).click()
  await page.locator('.talk[data-state=off]').waitFor()
})

test('[DM48] Escape interrupts the model, and leaving the mode ends the talk', async () => {
  world.emulator.live.hear(LONG)
  const page = await world.visit()
  await chooseMode(page, 'ADK · Live')
  await page.getByRole('button', { name: 'Talk hands-free' }).click()
  await page.locator('.talk[data-state=model-speaking]').waitFor()
  await page.keyboard.press('Escape')
  await page.locator('.talk:not([data-state=model-speaking])').waitFor()
  expect(await page.locator('.talk').getAttribute('data-state')).not.toBe('off')
  await chooseMode(page, 'ADK · SSE')
  await page.getByRole('button', { name: /^Talk: switches/ }).click()
  await page.locator('.talk[data-state=off]').waitFor()
})
