import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { modesOf } from './support/modes.ts'
import { readPage } from './support/chat-page.ts'
import { openLine } from './support/line.ts'
import { snap } from './support/snap.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'

// Shorter than the server waits for a reader to come back: only a real stop is fast enough.
const STOP_TIMEOUT_MS = 20_000

// As Gemini says it over HTTP, and on its socket.
const USED_UP = {
  sse: [{ type: 'fail', status: 429, message: 'quota', retryAfterSeconds: 3 }],
  live: [{ type: 'close', code: 1011, reason: 'RESOURCE_EXHAUSTED: quota. Please retry in 2.2s.' }],
} as const

let testDemo: TestDemo
beforeAll(async () => {
  testDemo = await openTestDemo()
})
afterAll(() => testDemo[Symbol.asyncDispose]())
afterEach(() => testDemo.leave())

describe.each(modesOf('live'))('%s', (mode) => {
  test('[DM23] Stop ends the reply in the page and at the model', async () => {
    const page = await testDemo.visit({ mode })
    const { say, answer, answers, stop, idle } = readPage(page)
    const gate = `stop-${mode}`
    await say(`[[say I could go on]][[wait ${gate}]][[say and on.]]`)
    await answer().getByText('I could go on').waitFor()

    await stop.click()
    await idle()
    await expect.poll(() => isSilent(gate), { timeout: STOP_TIMEOUT_MS }).toBe(true)
    await snap(page, `stopped-${mode}`)

    testDemo.emulator.release(gate)
    await page.reload()
    await page.getByRole('textbox', { name: 'Message' }).waitFor()
    await idle()
    expect((await answers.allTextContents()).join('')).not.toContain('and on.')

    // The chat is free for the next message.
    await say('[[say Here I am.]]')
    await page.getByText('Here I am.', { exact: true }).waitFor()
  })
})

describe.each(modesOf('live'))('%s', (mode) => {
  test('[DM24] after a reload in the middle of a reply, the whole reply is shown once', async () => {
    const page = await testDemo.visit({ mode })
    const { say, answer, answers, log, idle } = readPage(page)
    const gate = `reload-${mode}`
    await say(`[[say Before the reload,]][[wait ${gate}]][[say and after it.]]`)
    await answer().getByText('Before the reload,').waitFor()

    await page.reload()
    await answer().getByText('Before the reload,').waitFor()
    await snap(page, `reloaded-${mode}`)
    testDemo.emulator.release(gate)
    await answer().getByText('and after it.').waitFor()
    await idle()

    expect(await answers.count()).toBe(1)
    expect(await log.locator('[data-role=user]').count()).toBe(1)
    expect(await answer().locator('.markdown').textContent()).toMatch(
      /^Before the reload, ?and after it\.$/,
    )
    expect(testDemo.told(gate)).toBe(1)
  })
})

describe.each(modesOf('sse'))('%s', (mode) => {
  test('[DM25] after a lost connection, the reply continues and is shown once and completely', async () => {
    await using line = await openLine(testDemo.demo.url)
    const page = await testDemo.visit({ mode, url: line.url })
    const { say, answer, answers, log, problem, idle } = readPage(page)
    const gate = `cut-${mode}`
    await say(`[[say Before the cut,]][[wait ${gate}]][[say and after it.]]`)
    await answer().getByText('Before the cut,').waitFor()

    line.break()
    const lost = page.getByRole('status').filter({ hasText: 'Connection lost, reconnecting…' })
    await lost.waitFor()
    await snap(page, `lost-${mode}`)
    testDemo.emulator.release(gate)
    line.mend()
    await answer().getByText('and after it.').waitFor()
    await idle()

    await lost.waitFor({ state: 'detached' })
    expect(await problem.count()).toBe(0)
    expect(await answers.count()).toBe(1)
    expect(await log.locator('[data-role=user]').count()).toBe(1)
    expect(await answer().locator('.markdown').textContent()).toMatch(
      /^Before the cut, ?and after it\.$/,
    )
    expect(testDemo.told(gate)).toBe(1)
    await snap(page, `healed-${mode}`)
  })
})

describe.each(modesOf('sse'))('%s', (mode) => {
  test('[DM25] a message that did not arrive is sent again, after those that did', async () => {
    await using line = await openLine(testDemo.demo.url)
    const page = await testDemo.visit({ mode, url: line.url })
    const { say, answers, log, idle } = readPage(page)
    await say('[[say The first answer.]]')
    await log.getByText('The first answer.', { exact: true }).waitFor()
    await idle()

    line.break()
    const words = `[[say The second answer, ${mode}.]]`
    await say(words)
    await log.getByText(words).waitFor()
    const lost = page.getByText(/Your message will be sent when the connection is back/).first()
    await lost.waitFor()
    await snap(page, `unsent-${mode}`)
    line.mend()
    await log.getByText(`The second answer, ${mode}.`, { exact: true }).waitFor()
    await idle()
    expect(await answers.count()).toBe(2)
    expect(await log.locator('[data-role=user]').count()).toBe(2)
    expect(testDemo.told(words)).toBe(1)
  })
})

describe.each(modesOf('live'))('%s', (mode) => {
  longTest('[DM25] a rate limit shows how long to wait, and a retry gets the reply', async () => {
    let tries = 0
    testDemo.answer(`busy ${mode} model`, () => {
      tries += 1
      return tries === 1 ? USED_UP[mode] : [{ type: 'say', text: 'Now I can.' }]
    })
    const page = await testDemo.visit({ mode })
    const { say, alert, problem, answers, log } = readPage(page)
    await say(`Are you a busy ${mode} model?`)
    await alert.getByText('The model is busy').waitFor()
    await problem.getByText(/Try again in \d seconds?\./).waitFor()
    expect(await problem.textContent()).not.toContain('quota')
    await snap(page, `busy-${mode}`)

    // It can be pressed when the time is over.
    await problem.getByRole('button', { name: 'Try again' }).click()
    await log.getByText('Now I can.').waitFor()
    expect(await problem.count()).toBe(0)
    expect(await answers.count()).toBe(1)
    expect(await log.locator('[data-role=user]').count()).toBe(1)
    expect(tries).toBe(2)
  })
})

describe.each(modesOf('sse'))('%s', (mode) => {
  // In `npm test`, this is tested over direct mode (DM49), and over both transports without a page.
  longTest('[DM25] a retry replaces the reply', async () => {
    let tries = 0
    testDemo.answer(`any ${mode} number`, () => [{ type: 'say', text: `Number ${(tries += 1)}` }])
    const page = await testDemo.visit({ mode })
    const { say, answers, log, idle } = readPage(page)
    await say(`Say any ${mode} number`)
    await log.getByText('Number 1').waitFor()
    await idle()
    await log.getByRole('button', { name: 'Try again' }).click()
    await log.getByText('Number 2').waitFor()
    await idle()
    expect(await answers.count()).toBe(1)
    await page.reload()
    await log.getByText('Number 2').waitFor()
    expect(await answers.count()).toBe(1)
    expect(tries).toBe(2)
  })
})

test('[DM24] a reply that ends during the reload is not lost', async () => {
  const page = await testDemo.visit()
  const { say, answer, answers } = readPage(page)
  await say('[[say It was running,]][[wait late]][[say and now it is not.]]')
  await answer().getByText('It was running,').waitFor()

  // The page has been told that the answer is running; it ends before the page asks to resume it.
  const chatId = new URL(page.url()).searchParams.get('chat')
  await page.route('**/stream/*/stream', async (route) => {
    testDemo.emulator.release('late')
    const read = async (): Promise<unknown> =>
      (await page.request.get(`${testDemo.demo.url}/chats/${chatId}/messages`)).json()
    await expect.poll(read).toMatchObject({ running: false })
    await route.continue()
  })
  await page.reload()
  await answer().getByText('and now it is not.').waitFor()
  expect(await answers.count()).toBe(1)
})

/** Whether the model that was told these words has been made to stop. */
function isSilent(words: string): boolean {
  const [request] = testDemo.asked(words)
  if (request) return request.aborted
  const session = testDemo.emulator.live.sessions.find(({ received }) =>
    JSON.stringify(received).includes(words),
  )
  return session !== undefined && (!session.speaking || session.closed !== undefined)
}
