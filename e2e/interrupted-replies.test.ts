import { describe, expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { testModes } from './support/modes.ts'
import { chatPage } from './support/chat-page.ts'
import { openBreakableProxy } from './support/breakable-proxy.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { useTestDemo } from './support/use-test-demo.ts'

// Shorter than the time after which the server stops a turn without readers, so only the stop request can be the cause.
const STOP_TIMEOUT_MS = 20_000

// A rate limit as Gemini reports it over HTTP and on a live session.
const RATE_LIMIT = {
  sse: [{ type: 'fail', status: 429, message: 'quota', retryAfterSeconds: 3 }],
  live: [{ type: 'close', code: 1011, reason: 'RESOURCE_EXHAUSTED: quota. Please retry in 2.2s.' }],
} as const

const testDemo = useTestDemo()

describe.each(testModes('live'))('%s', (mode) => {
  test('[DM23] Stop ends the reply in the page and at the model', async () => {
    const page = await testDemo.openPage({ mode })
    const { send, reply, replies, stop, waitUntilIdle } = chatPage(page)
    const gate = `stop-${mode}`
    await send(`[[say I could go on]][[wait ${gate}]][[say and on.]]`)
    await reply().getByText('I could go on').waitFor()

    await stop.click()
    await waitUntilIdle()
    await expect.poll(() => isModelStopped(gate), { timeout: STOP_TIMEOUT_MS }).toBe(true)
    await takeScreenshot(page, `stopped-${mode}`)

    testDemo.emulator.release(gate)
    await page.reload()
    await page.getByRole('textbox', { name: 'Message' }).waitFor()
    await waitUntilIdle()
    expect((await replies.allTextContents()).join('')).not.toContain('and on.')

    // The chat accepts the next message.
    await send('[[say Here I am.]]')
    await page.getByText('Here I am.', { exact: true }).waitFor()
  })
})

describe.each(testModes('live'))('%s', (mode) => {
  test('[DM24] after a reload in the middle of a reply, the whole reply is shown once', async () => {
    const page = await testDemo.openPage({ mode })
    const { send, reply, replies, log, waitUntilIdle } = chatPage(page)
    const gate = `reload-${mode}`
    await send(`[[say Before the reload,]][[wait ${gate}]][[say and after it.]]`)
    await reply().getByText('Before the reload,').waitFor()

    await page.reload()
    await reply().getByText('Before the reload,').waitFor()
    await takeScreenshot(page, `reloaded-${mode}`)
    testDemo.emulator.release(gate)
    await reply().getByText('and after it.').waitFor()
    await waitUntilIdle()

    expect(await replies.count()).toBe(1)
    expect(await log.locator('[data-role=user]').count()).toBe(1)
    expect(await reply().locator('.markdown').textContent()).toMatch(
      /^Before the reload, ?and after it\.$/,
    )
    expect(testDemo.countSentToModel(gate)).toBe(1)
  })
})

describe.each(testModes('sse'))('%s', (mode) => {
  test('[DM25] after a lost connection, the reply continues and is shown once and completely', async () => {
    await using proxy = await openBreakableProxy(testDemo.demo.url)
    const page = await testDemo.openPage({ mode, url: proxy.url })
    const { send, reply, replies, log, problem, waitUntilIdle } = chatPage(page)
    const gate = `lost-${mode}`
    await send(`[[say Before the loss,]][[wait ${gate}]][[say and after it.]]`)
    await reply().getByText('Before the loss,').waitFor()

    proxy.goOffline()
    const lost = page.getByRole('status').filter({ hasText: 'Connection lost, reconnecting…' })
    await lost.waitFor()
    await takeScreenshot(page, `lost-${mode}`)
    testDemo.emulator.release(gate)
    proxy.goOnline()
    await reply().getByText('and after it.').waitFor()
    await waitUntilIdle()

    await lost.waitFor({ state: 'detached' })
    expect(await problem.count()).toBe(0)
    expect(await replies.count()).toBe(1)
    expect(await log.locator('[data-role=user]').count()).toBe(1)
    expect(await reply().locator('.markdown').textContent()).toMatch(
      /^Before the loss, ?and after it\.$/,
    )
    expect(testDemo.countSentToModel(gate)).toBe(1)
    await takeScreenshot(page, `reconnected-${mode}`)
  })
})

describe.each(testModes('sse'))('%s', (mode) => {
  longTest('[DM25] a message that did not arrive is sent again, after those that did', async () => {
    await using proxy = await openBreakableProxy(testDemo.demo.url)
    const page = await testDemo.openPage({ mode, url: proxy.url })
    const { send, replies, log, waitUntilIdle } = chatPage(page)
    await send('[[say The first reply.]]')
    await log.getByText('The first reply.', { exact: true }).waitFor()
    await waitUntilIdle()

    proxy.goOffline()
    const message = `[[say The second reply, ${mode}.]]`
    await send(message)
    await log.getByText(message).waitFor()
    const lost = page.getByText(/Your message will be sent when the connection is back/).first()
    await lost.waitFor()
    await takeScreenshot(page, `unsent-${mode}`)
    proxy.goOnline()
    await log.getByText(`The second reply, ${mode}.`, { exact: true }).waitFor()
    await waitUntilIdle()
    expect(await replies.count()).toBe(2)
    expect(await log.locator('[data-role=user]').count()).toBe(2)
    expect(testDemo.countSentToModel(message)).toBe(1)
  })
})

describe.each(testModes('live'))('%s', (mode) => {
  longTest('[DM25] a rate limit shows how long to wait, and a retry gets the reply', async () => {
    let tries = 0
    testDemo.respondTo(`busy ${mode} model`, () => {
      tries += 1
      return tries === 1 ? RATE_LIMIT[mode] : [{ type: 'say', text: 'Now I can.' }]
    })
    const page = await testDemo.openPage({ mode })
    const { send, alert, problem, replies, log } = chatPage(page)
    await send(`Are you a busy ${mode} model?`)
    await alert.getByText('The model is busy').waitFor()
    await problem.getByText(/Try again in \d seconds?\./).waitFor()
    expect(await problem.textContent()).not.toContain('quota')
    await takeScreenshot(page, `busy-${mode}`)

    // The button is enabled when the wait is over. `click` waits for that.
    await problem.getByRole('button', { name: 'Try again' }).click()
    await log.getByText('Now I can.').waitFor()
    expect(await problem.count()).toBe(0)
    expect(await replies.count()).toBe(1)
    expect(await log.locator('[data-role=user]').count()).toBe(1)
    expect(tries).toBe(2)
  })
})

describe.each(testModes('sse'))('%s', (mode) => {
  // In `npm test`, DM49 covers this in direct mode, and tests without a browser cover both transports.
  longTest('[DM25] a retry replaces the reply', async () => {
    let tries = 0
    testDemo.respondTo(`any ${mode} number`, () => [
      { type: 'say', text: `Number ${(tries += 1)}` },
    ])
    const page = await testDemo.openPage({ mode })
    const { send, replies, log, waitUntilIdle } = chatPage(page)
    await send(`Say any ${mode} number`)
    await log.getByText('Number 1').waitFor()
    await waitUntilIdle()
    await log.getByRole('button', { name: 'Try again' }).click()
    await log.getByText('Number 2').waitFor()
    await waitUntilIdle()
    expect(await replies.count()).toBe(1)
    await page.reload()
    await log.getByText('Number 2').waitFor()
    expect(await replies.count()).toBe(1)
    expect(tries).toBe(2)
  })
})

longTest('[DM24] a reply that ends during the reload is not lost', async () => {
  const page = await testDemo.openPage()
  const { send, reply, replies } = chatPage(page)
  await send('[[say It was running,]][[wait late]][[say and now it is not.]]')
  await reply().getByText('It was running,').waitFor()

  // The reply is running when the page loads the messages, and ends before the page requests its stream.
  const chatId = new URL(page.url()).searchParams.get('chat')
  await page.route('**/stream/*/stream?*', async (route) => {
    testDemo.emulator.release('late')
    const read = async (): Promise<unknown> =>
      (await page.request.get(`${testDemo.demo.url}/chats/${chatId}/messages`)).json()
    await expect.poll(read).toMatchObject({ running: false })
    await route.continue()
  })
  await page.reload()
  await reply().getByText('and now it is not.').waitFor()
  expect(await replies.count()).toBe(1)
})

/** Returns whether the reply to this text was stopped at the model. */
function isModelStopped(text: string): boolean {
  const [request] = testDemo.findModelRequests(text)
  if (request) return request.aborted
  const session = testDemo.emulator.live.sessions.find(({ received }) =>
    JSON.stringify(received).includes(text),
  )
  return session !== undefined && (!session.speaking || session.closed !== undefined)
}
