import { mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

import type { BrowserContextOptions, Page } from 'playwright-core'

import { buildDemoPage } from '../apps/demo/scripts/build-page.ts'
import { chatPage } from '../e2e/support/chat-page.ts'
import { syllables } from '../e2e/support/make-wav.ts'
import { voiceControls, openWithMicrophone } from '../e2e/support/talk-page.ts'
import { openTestDemo } from '../e2e/support/test-demo.ts'

/** Takes the screenshots of the docs: `npm run screenshots`. */
const FOLDER = new URL('../docs/images/', import.meta.url)
const WIDE = { viewport: { width: 1440, height: 900 } }
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
/** One second of speech, then silence. */
const SPEECH = [{ hertz: 0, ms: 300 }, ...syllables(440, 1_000), { hertz: 0, ms: 20_000 }]

await mkdir(FOLDER, { recursive: true })
await buildDemoPage()
const testDemo = await openTestDemo()

for (const colorScheme of ['light', 'dark'] as const) {
  const options = { ...WIDE, colorScheme }
  await take(`chat-${colorScheme}`, await chat(options))
  await take(`approval-${colorScheme}`, await approval(options))
  await take(`live-${colorScheme}`, await live(options))
  await take(`inspector-${colorScheme}`, await inspector(options))
}
await take('phone', await approval({ ...PHONE, colorScheme: 'light' }))
await take('japanese', await japanese({ ...WIDE, colorScheme: 'light' }))
await testDemo[Symbol.asyncDispose]()
// The shared browser would keep the process running.
process.exit()

async function take(name: string, page: Page): Promise<void> {
  await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur())
  await page.screenshot({ path: fileURLToPath(new URL(`${name}.png`, FOLDER)) })
  await testDemo.closePages()
}

async function chat(options: BrowserContextOptions): Promise<Page> {
  const page = await testDemo.openPage(options)
  const { send, waitUntilIdle, tool, reply } = chatPage(page)
  await send('What is the weather in Tokyo?')
  await tool('get_weather').getByText('Done').waitFor()
  await waitUntilIdle()
  await send('Think step by step: which is larger, 9.9 or 9.11?')
  await reply(1).waitFor()
  await waitUntilIdle()
  return page
}

async function approval(options: BrowserContextOptions): Promise<Page> {
  const page = await testDemo.openPage(options)
  const { send, waitUntilIdle, tool } = chatPage(page)
  await send('Send $30 to Alice and $120 to Bob')
  await tool('Alice').getByRole('button', { name: 'Approve' }).click()
  await tool('Alice').getByText('Approved.').waitFor()
  await tool('Bob').getByRole('button', { name: 'Approve' }).waitFor()
  await waitUntilIdle()
  return page
}

async function live(options: BrowserContextOptions): Promise<Page> {
  testDemo.emulator.live.queueTranscript('Send $30 to Alice')
  const page = await openWithMicrophone(testDemo, SPEECH, { ...options })
  const { handsFree, waitForStatus } = voiceControls(page)
  await handsFree.click()
  await chatPage(page).tool('Alice').getByRole('button', { name: 'Approve' }).waitFor()
  await waitForStatus('Waiting for your approval')
  return page
}

async function inspector(options: BrowserContextOptions): Promise<Page> {
  const page = await testDemo.openPage({ ...options, mode: 'live' })
  await page.getByRole('button', { name: 'Show inspector' }).click()
  const { send, tool, reply } = chatPage(page)
  await send('Send $50 to Alice')
  await tool('Alice').getByRole('button', { name: 'Approve' }).click()
  await reply().getByText('$950').waitFor()
  await page.getByRole('tab', { name: 'Approvals' }).click()
  await page.locator('.stop').getByText('done').waitFor()
  await page.getByText('Idle: waiting for your message.').waitFor()
  return page
}

async function japanese(options: BrowserContextOptions): Promise<Page> {
  const page = await testDemo.openPage({ ...options, locale: 'ja-JP' })
  const { send, waitUntilIdle, log, tool } = chatPage(page)
  await send('東京の天気は?')
  await tool('get_weather').first().waitFor()
  await waitUntilIdle()
  await send('Aliceに30ドル、Bobに40ドル送金してください')
  await log.getByRole('button', { name: '承認' }).first().waitFor()
  await waitUntilIdle()
  return page
}
