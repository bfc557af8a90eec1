import { describe, expect, test } from 'vitest'

import { chatPage } from './support/chat-page.ts'
import { longTest } from '../test/support/long-test.ts'
import { testModes } from './support/modes.ts'
import { chooseMode, sendAndWait, isFocused, appShell } from './support/app-shell.ts'
import { requestApproval } from './support/approvals.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

describe('messages', () => {
  test('[DM370] over HTTP, a message that is written during a reply is sent after it', async () => {
    const page = await testDemo.openPage()
    const { send, stop, log, waitUntilIdle, input } = chatPage(page)
    await send('[[say One.]][[wait gate-1]]')
    await stop.waitFor()
    await send('[[say Two.]]')
    const queue = page.getByRole('list', { name: 'Messages waiting to be sent' })
    await queue.getByText('[[say Two.]]').waitFor()
    await takeScreenshot(page, 'queued')
    await input.press('Escape')
    expect(await input.inputValue()).toBe('[[say Two.]]')
    await input.press('Enter')
    await queue.waitFor()
    testDemo.emulator.release('gate-1')
    await log.getByText('Two.', { exact: true }).waitFor()
    await waitUntilIdle()
    expect(await queue.count()).toBe(0)
    expect(await log.locator('[data-role=user]').count()).toBe(2)
  })

  // In `npm test`, RE372 covers this without a browser.
  longTest(
    '[DM370] in live mode, a message that is written during a reply interrupts it',
    async () => {
      const page = await testDemo.openPage({ mode: 'live' })
      const { send, stop, log, waitUntilIdle } = chatPage(page)
      await send('[[say One.]][[wait never]]')
      await stop.waitFor()
      await log.getByText('One.').last().waitFor()
      await send('[[say Two.]]')
      await log.getByText('Two.', { exact: true }).waitFor()
      await waitUntilIdle()
      const roles = await log
        .locator('.adk-message')
        .evaluateAll((all) => all.map(({ dataset }) => (dataset as { role?: string }).role))
      expect(roles).toEqual(['user', 'assistant', 'user', 'assistant'])
    },
  )

  longTest(
    '[DM25] in live mode, an error of the model adds no message that the user did not write',
    async () => {
      const page = await testDemo.openPage({ mode: 'live' })
      const { send, log, waitUntilIdle, problem } = chatPage(page)
      await send('cause an error')
      await problem.waitFor()
      await waitUntilIdle()
      for (const isReloaded of [false, true]) {
        if (isReloaded) await page.reload()
        await log.locator('[data-role=user]').first().waitFor()
        expect(await log.locator('[data-role=user]').count()).toBe(1)
        expect(await log.textContent()).not.toContain('(spoken)')
      }
    },
  )

  test('[DM371] the text in the input survives a reload and another chat', async () => {
    const page = await testDemo.openPage()
    const { input } = chatPage(page)
    await input.fill('a new chat')
    await page.reload()
    await expect.poll(() => input.inputValue()).toBe('a new chat')
    await input.fill('')
    await sendAndWait(page, '[[say First.]]')
    await input.fill('half a sentence')
    await page.reload()
    await expect.poll(() => input.inputValue()).toBe('half a sentence')
    await appShell(page).newChat.first().click()
    await expect.poll(() => input.inputValue()).toBe('')
    await page.goBack()
    await expect.poll(() => input.inputValue()).toBe('half a sentence')
  })
})

describe('tabs', () => {
  test.each(testModes('live'))(
    '[DM372] over %s, Stop in one tab ends the reply in both',
    async (mode) => {
      const page = await testDemo.openPage({ mode })
      const { send, log } = chatPage(page)
      await send('[[say One.]][[wait never]]')
      await log.getByText('One.', { exact: true }).waitFor()
      await page.waitForURL('**/?chat=*')
      const other = await page.context().newPage()
      await other.goto(page.url())
      const second = chatPage(other)
      await second.log.getByText('One.', { exact: true }).waitFor()
      await second.stop.click()
      for (const each of [chatPage(page), second]) {
        await each.waitUntilIdle()
        await each.log.getByText('Stopped').waitFor()
      }
      expect(await isFocused(second.input)).toBe(true)
    },
  )

  longTest(
    '[DM63] each tab has its own mode, and a new tab starts with the last choice',
    async () => {
      const page = await testDemo.openPage({ mode: 'live' })
      const other = await page.context().newPage()
      await other.goto(page.url())
      await chooseMode(other, 'Chat')
      const mode = (shown: typeof page) => shown.locator('.segment:has(:checked)').first()
      const chosen = await mode(other).textContent()
      const third = await page.context().newPage()
      await third.goto(page.url())
      expect(await mode(third).textContent()).toBe(chosen)
      expect(await mode(page).textContent()).not.toBe(chosen)
      await page.reload()
      await mode(page).waitFor()
      expect(await mode(page).textContent()).not.toBe(chosen)
    },
  )
})

describe('accessibility', () => {
  test('[DM374] Alt+I moves the focus into the inbox and back, and the first Tab leads to the input', async () => {
    const page = await testDemo.openPage()
    const { send, input, tool } = chatPage(page)
    await send('Send $30 to Alice')
    await tool('process_payment').getByRole('timer').waitFor()
    const announcer = page.locator('[aria-live=polite]').getByText('Send $30.00 to Alice')
    await announcer.first().waitFor({ state: 'attached' })
    await expect.poll(() => page.title()).toMatch(/^\(1\) /)
    await input.focus()
    await page.keyboard.press('Alt+KeyI')
    const inbox = page.locator('#inbox')
    await inbox.locator(':focus').or(inbox.locator('.adk-inbox:focus')).first().waitFor()
    expect(await inbox.evaluate((list) => list.scrollTop)).toBe(0)
    await page.keyboard.press('Tab')
    expect(await inbox.locator(':focus').count()).toBe(1)
    await page.keyboard.press('Escape')
    await expect.poll(() => isFocused(input)).toBe(true)

    await page.reload()
    await input.waitFor()
    const first = page.locator('a[href], button, input, textarea').first()
    expect(await first.textContent()).toBe('Skip to the message input')
    await first.focus()
    await page.keyboard.press('Enter')
    expect(await isFocused(input)).toBe(true)
  })

  test('[DM30] the first of two new approvals is in view from its title to its headline, at 400 % zoom and at 1280 × 720', async () => {
    const { page, card } = await requestApproval(testDemo, 'Send $50 to Alice and $20 to Bob', {
      viewport: { width: 320, height: 225 },
    })
    await card('Bob').waitFor({ state: 'attached' })
    const isInView = async () => {
      const [view, title, headline] = await Promise.all(
        [
          page.locator('.scroller'),
          card('Alice').locator('.adk-tool-header'),
          card('Alice').locator('.adk-call-description'),
        ].map((part) => part.boundingBox()),
      )
      if (!view || !title || !headline) return false
      return title.y >= view.y && headline.y + headline.height <= view.y + view.height
    }
    await expect.poll(isInView).toBe(true)
    await takeScreenshot(page, 'zoom-approval')
    await page.setViewportSize({ width: 1280, height: 720 })
    await expect.poll(isInView).toBe(true)
    await takeScreenshot(page, 'two-approvals')
  })

  test('[RE1170] from right to left, nothing overflows on a phone and on a desktop', async () => {
    const { page, card } = await requestApproval(testDemo, 'Send $50 to Alice', {
      viewport: { width: 390, height: 740 },
    })
    await page.evaluate(() => document.documentElement.setAttribute('dir', 'rtl'))
    const overflowing = () =>
      page.evaluate(() => {
        const selector = '.main-area *, .panel *, :popover-open *'
        return [...document.querySelectorAll<HTMLElement>(selector)]
          .filter(
            (part) => part.checkVisibility() && !part.closest('.visually-hidden, .adk-hidden'),
          )
          .filter((part) => {
            const { left, right } = part.getBoundingClientRect()
            return left < -1 || right > window.innerWidth + 1
          })
          .map(({ tagName, className }) => `${tagName}.${className}`)
      })
    await card('Alice').getByRole('button', { name: 'Edit…' }).click()
    expect(await overflowing()).toEqual([])
    // The arrow points from the balance before to the one after.
    const arrow = card('Alice').locator('.adk-arrow')
    expect(await arrow.evaluate((found) => getComputedStyle(found).transform)).toContain('-1')
    await takeScreenshot(page, 'rtl-phone')
    await page.setViewportSize({ width: 1280, height: 720 })
    await page.getByRole('button', { name: 'Show inspector' }).click()
    await page.locator('.chat-turn').first().waitFor({ state: 'attached' })
    await page.getByRole('button', { name: 'Approvals: 1 pending' }).click()
    expect(await overflowing()).toEqual([])
    await takeScreenshot(page, 'rtl')
  })

  test('[DM375] at 400 % zoom, the conversation has most of the height', async () => {
    const page = await testDemo.openPage({ viewport: { width: 320, height: 225 } })
    await sendAndWait(page, '[[say One.]]')
    const box = await page.locator('.scroller').boundingBox()
    await takeScreenshot(page, 'zoom')
    expect(box?.height).toBeGreaterThan(225 / 2)
    const width = await page.evaluate(() => document.documentElement.scrollWidth)
    expect(width).toBeLessThanOrEqual(320)
    // The whole top bar is visible without scrolling.
    const right = await page
      .locator('.top-bar button:visible')
      .evaluateAll((all) => Math.max(...all.map((button) => button.getBoundingClientRect().right)))
    expect(right).toBeLessThanOrEqual(320)
  })

  longTest(
    '[DM375] at 400 % zoom, the voice controls leave a third of the height to the conversation',
    async () => {
      const page = await testDemo.openPage({ viewport: { width: 320, height: 225 }, mode: 'live' })
      await page.locator('.adk-stage').waitFor()
      const heightOf = async (part: string) => (await page.locator(part).boundingBox())?.height ?? 0
      expect(await heightOf('.scroller')).toBeGreaterThan(225 / 3)
      expect(await heightOf('.top-bar')).toBeGreaterThan(30)
      expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBe(225)
    },
  )

  longTest(
    '[DM681] the texts for screen readers in the inspector do not make the page scroll',
    async () => {
      const page = await testDemo.openPage({ viewport: { width: 1300, height: 420 } })
      for (const text of ['[[say One.]]', '[[say Two.]]', '[[say Three.]]'])
        await sendAndWait(page, text)
      await page.getByRole('button', { name: 'Show inspector' }).click()
      await page.locator('.chat-turn').nth(2).waitFor({ state: 'attached' })
      expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBe(420)
    },
  )

  test('[DM376] with forced colours, the chosen mode and bubbles are visible', async () => {
    const page = await testDemo.openPage({ forcedColors: 'active' })
    await sendAndWait(page, '[[say One.]]')
    const style = (selector: string, name: string) =>
      page
        .locator(selector)
        .first()
        .evaluate((element, property) => getComputedStyle(element).getPropertyValue(property), name)
    const [chosen, other] = await Promise.all([
      style('.segment:has(:checked)', 'background-color'),
      style('.segment:not(:has(:checked))', 'background-color'),
    ])
    expect(chosen).not.toBe(other)
    expect(await style('.adk-said', 'border-top-style')).toBe('solid')
    await takeScreenshot(page, 'forced-colours')
  })

  test('[DM377] on a touch screen, buttons are at least 44 px', async () => {
    const page = await testDemo.openPage({
      viewport: { width: 390, height: 844 },
      hasTouch: true,
      isMobile: true,
    })
    await sendAndWait(page, '[[say One.]]')
    await takeScreenshot(page, 'phone')
    const small = await page
      .locator('.top-bar button:visible, .composer button:visible, .adk-message button:visible')
      .evaluateAll((all) =>
        all
          .map((button) => ({ name: button.ariaLabel, box: button.getBoundingClientRect() }))
          .filter(({ box }) => box.width < 44 || box.height < 44)
          .map(({ name, box }) => `${name}: ${box.width} × ${box.height}`),
      )
    expect(small).toEqual([])
  })
})
