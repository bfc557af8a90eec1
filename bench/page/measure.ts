import type { Page } from 'playwright-core'

import { chatPage } from '../../e2e/support/chat-page.ts'
import {
  hasReplyEnded,
  instrument,
  type Reading,
  readReplyFigures,
  readStart,
  type Start,
  startMeasuring,
} from './instruments.ts'
import type { Subject } from './subjects.ts'

export interface ReplyFigures extends Omit<Reading, 'keys'> {
  /** The CPU time of the page's main thread, in ms. */
  readonly cpu: number
  readonly p50: number
  readonly p95: number
}

/** Opens the page as a new user. */
export async function measureStart(page: Page, { url, settings }: Subject): Promise<Start> {
  // `tsx` adds calls of a helper that sets the names of functions. Pages do not have it.
  await page.addInitScript('globalThis.__name ??= (named) => named')
  await page.addInitScript((stored) => {
    if (location.protocol === 'http:')
      for (const [key, value] of Object.entries(stored)) localStorage.setItem(key, value)
  }, settings)
  await instrument(page)
  await page.goto(url)
  await chatPage(page).input.waitFor()
  await waitUntilIdle(page)
  return readStart(page)
}

const KEY_EVERY_MS = 50

/** Fills a chat with earlier messages, requests a long reply, and types the next message meanwhile. */
export async function measureReply(
  page: Page,
  { url }: Subject,
  { earlier, prompt }: { readonly earlier: number; readonly prompt: string },
): Promise<ReplyFigures> {
  const chat = `bench-${crypto.randomUUID()}`
  await fill(page, chat, earlier / 2)
  await page.goto(`${url}/?chat=${chat}`)
  const { send, log } = chatPage(page)
  await log
    .locator('.adk-message, .message')
    .nth(earlier - 1)
    .waitFor()
  await waitUntilIdle(page)
  const cpu = await watchCpu(page)
  await startMeasuring(page)
  await send(prompt)
  while (!(await hasReplyEnded(page))) {
    await page.keyboard.press('x')
    await new Promise((resolve) => setTimeout(resolve, KEY_EVERY_MS))
  }
  const { keys, ...reading } = await readReplyFigures(page)
  return { ...reading, cpu: await cpu(), p50: quantile(keys, 0.5), p95: quantile(keys, 0.95) }
}

/** Returns a function that returns the CPU time of the page since now. */
async function watchCpu(page: Page): Promise<() => Promise<number>> {
  const browser = await page.context().newCDPSession(page)
  await browser.send('Performance.enable', { timeDomain: 'threadTicks' })
  const read = async (): Promise<number> => {
    const { metrics } = await browser.send('Performance.getMetrics')
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0) * 1_000
  }
  const from = await read()
  return async () => (await read()) - from
}

/** Resolves when the page is idle. */
async function waitUntilIdle(page: Page): Promise<void> {
  await page.evaluate(async () => {
    for (let times = 0; times < 3; times += 1)
      await new Promise((resolve) => requestIdleCallback(resolve))
  })
}

/** Sends messages directly to the server, one per turn. */
async function fill(page: Page, chat: string, turns: number): Promise<void> {
  await page.evaluate(
    async ({ id, count }) => {
      for (let turn = 0; turn < count; turn += 1) {
        const parts = [{ type: 'text', text: 'few words' }]
        const messages = [{ id: `m${turn}`, role: 'user', parts }]
        const response = await fetch('/stream', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ id, messages, trigger: 'submit-message' }),
        })
        if (!response.ok) throw new Error(await response.text())
        await response.text()
      }
    },
    { id: chat, count: turns },
  )
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((first, second) => first - second)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}
