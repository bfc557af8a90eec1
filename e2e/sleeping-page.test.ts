import { setTimeout as delay } from 'node:timers/promises'

import { describe, expect, test } from 'vitest'

import { isLong } from '../test/support/long-run.ts'
import { decide, waitForOutcome } from './support/approvals.ts'
import { chatPage } from './support/chat-page.ts'
import { launchSuspendable } from './support/launch-chromium.ts'
import { testModes } from './support/modes.ts'
import { servePageWith7 } from './support/page-with-7.ts'
import { useTestDemo } from './support/use-test-demo.ts'

/** Longer than any time-out of the client, of the server and of the leases. */
const SLEEP_MS = 95_000

const testDemo = useTestDemo()

const isSkipped = !isLong || process.platform === 'win32'
const VERSIONS = ['ai 6', 'ai 7'] as const
const CASES = testModes('sse').flatMap((mode) =>
  VERSIONS.map((version) => [mode, version] as const),
)

describe.each(CASES)('%s, %s', (mode, version) => {
  test.skipIf(isSkipped)(
    '[CL903] a page that was suspended, as by a laptop that sleeps, shows what was decided and written elsewhere',
    async () => {
      await using laptop = await launchSuspendable()
      const context = await laptop.browser.newContext({ locale: 'en-US' })
      await using served = version === 'ai 7' ? await servePageWith7(testDemo.demo.url) : undefined
      // The document of the demo signs the person in, and cookies do not depend on the port.
      await context.request.get(testDemo.demo.url)
      const page = await context.newPage()
      await page.addInitScript((chosen) => localStorage.setItem('mode', chosen), mode)
      await page.goto(served?.url ?? testDemo.demo.url)
      const sleeping = chatPage(page)
      await sleeping.send('Send $50 to Alice')
      await page.locator('.adk-approval').first().waitFor()
      await sleeping.waitUntilIdle()
      const [storageState, url] = [await context.storageState(), page.url()]

      laptop.suspend()
      const sleepsAt = performance.now()
      const other = await testDemo.openPage({ mode, url, storageState })
      const awake = chatPage(other)
      await decide(awake.tool('Alice'), 'approve')
      await waitForOutcome(awake.tool('Alice'))
      await awake.waitUntilIdle()
      await awake.send('[[say Written elsewhere.]]')
      await awake.reply(1).getByText('Written elsewhere.').waitFor()
      await awake.waitUntilIdle()
      await delay(Math.max(0, sleepsAt + SLEEP_MS - performance.now()))
      laptop.resume()

      await waitForOutcome(sleeping.tool('Alice'))
      await sleeping.reply(1).getByText('Written elsewhere.').waitFor()
      await sleeping.waitUntilIdle()
      const readMessages = (chat: typeof awake) => chat.log.locator('.adk-message').allInnerTexts()
      await expect.poll(() => readMessages(sleeping)).toEqual(await readMessages(awake))
      expect(await sleeping.problem.count()).toBe(0)
    },
    SLEEP_MS + 240_000,
  )
})
