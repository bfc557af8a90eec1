import { describe, expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { testModes } from './support/modes.ts'
import { chatPage } from './support/chat-page.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

const RICH = `# Tea

- \`green\`
- **black**

| City | °C |
|---|---|
| 東京 | 18 |

\`\`\`ts
const cups = 2
\`\`\`

Euler: $e^{i\\pi} + 1 = 0$, and

$$\\sum_{k=1}^n k = \\frac{n(n+1)}{2}$$`

/** Each mode has its own language. In `npm test`, each of the two tests runs in one mode. */
const LANGUAGES = {
  sse: ['Japanese', '空が青いのは、', '光が散乱するからです。'],
  live: ['English', 'The sky is blue.', 'Light scatters.'],
} as const
const WEATHER = {
  sse: ['en', 'What is the weather in Tokyo?', /18/],
  live: ['ja', '東京の天気は?', /18/],
} as const

describe.each(testModes('sse'))('%s', (mode) => {
  test.each([LANGUAGES[mode]])(
    '[DM20] a reply in %s is shown while it is streamed',
    async (name, first, second) => {
      const page = await testDemo.openPage({ mode })
      const { send, reply, waitUntilIdle } = chatPage(page)
      const gate = `${name}-${mode}`
      await send(`[[say ${first}]][[wait ${gate}]][[say ${second}]]`)

      await reply().getByText(first).waitFor()
      expect(await reply().textContent()).not.toContain(second)
      await takeScreenshot(page, `streaming-${gate}`)

      testDemo.emulator.release(gate)
      await reply().getByText(second).waitFor()
      await waitUntilIdle()
      expect(await reply().locator('.markdown').textContent()).toMatch(
        new RegExp(`^${first} ?${second}$`),
      )
      expect(testDemo.countSentToModel(gate)).toBe(1)
    },
  )
})

describe.each(testModes('live'))('%s', (mode) => {
  longTest.each([WEATHER[mode]])(
    '[DM21] [DM24] a tool call and the reply are shown, and shown again after a reload: %s',
    async (name, question, expected) => {
      const page = await testDemo.openPage({ mode })
      const { send, tool, replies, waitUntilIdle, log } = chatPage(page)
      await send(question)
      await tool('get_weather').getByText('Done').waitFor()
      await expect
        .poll(() => replies.last().locator('.markdown').last().textContent())
        .toMatch(expected)
      await waitUntilIdle()
      const before = await log.textContent()
      await page.reload()
      await tool('get_weather').waitFor()
      expect(await log.textContent()).toBe(before)

      await tool('get_weather').getByText('Details').click()
      const details = await tool('get_weather').locator('pre').allTextContents()
      expect(JSON.parse(details[0] ?? '')).toEqual({ location: 'Tokyo' })
      expect(JSON.parse(details[1] ?? '')).toMatchObject({ temperature: 18, condition: 'Cloudy' })
      expect(await tool('get_weather').count()).toBe(1)
      await takeScreenshot(page, `weather-${name}-${mode}`)
    },
  )
})

describe.each(testModes('sse'))('%s', (mode) => {
  test('[DM21] [DM532] a reply shows pictures, sources and code, and the inspector its tokens', async () => {
    const page = await testDemo.openPage({ mode })
    const { send, reply, waitUntilIdle } = chatPage(page)
    await send(
      '[[say See for yourself.]][[image #1f6b5a]][[code print(6 * 7) => 42]][[ground https://example.com/sky The sky]]',
    )
    const picture = reply().getByRole('img')
    await picture.waitFor()
    await waitUntilIdle()
    // The browser decodes a picture after it is in the page.
    const width = () => picture.evaluate((image: HTMLImageElement) => image.naturalWidth)
    await expect.poll(width).toBeGreaterThan(0)
    await reply().getByText('print(6 * 7)').waitFor()
    await reply().getByText('42', { exact: true }).waitFor()
    const source = reply().getByRole('link', { name: 'The sky' })
    expect(await source.getAttribute('href')).toBe('https://example.com/sky')
    const tokens = reply().getByText(/\d+ tokens in, \d+ out/)
    expect(await tokens.isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Show inspector' }).click()
    await tokens.waitFor()
    await takeScreenshot(page, `parts-${mode}`)
  })
})

describe.each(testModes('live'))('%s', (mode) => {
  longTest(
    '[DM20] the page shows that the model is thinking until the first text; thoughts are collapsed and can be opened',
    async () => {
      const page = await testDemo.openPage({ mode })
      const { send, reply } = chatPage(page)
      await send(`[[wait think-${mode}]][[think I look at the sky.]][[say It is blue.]]`)
      await page.getByText('Thinking…').waitFor()
      testDemo.emulator.release(`think-${mode}`)
      await reply().getByText('It is blue.').waitFor()
      expect(await page.getByText('Thinking…').count()).toBe(0)
      const thoughts = reply().getByText('I look at the sky.')
      expect(await thoughts.isVisible()).toBe(false)
      await reply().getByText('Reasoning').click()
      await thoughts.waitFor()
      await takeScreenshot(page, `thoughts-${mode}`)
    },
  )
})

describe.each(testModes('sse'))('%s', (mode) => {
  longTest(
    '[DM80] [DM530] [DM531] Markdown is shown as headings, lists, tables, highlighted code and formulas',
    async () => {
      testDemo.respondTo('about tea', () => [{ type: 'say', text: RICH }])
      const page = await testDemo.openPage({ mode })
      const { send, reply, waitUntilIdle } = chatPage(page)
      await send('Tell me about tea')
      await reply().locator('pre code').getByText('const cups = 2').waitFor()
      await waitUntilIdle()
      await reply().getByRole('heading', { name: 'Tea' }).waitFor()
      await reply().getByRole('cell', { name: '東京' }).waitFor()
      expect(await reply().getByRole('listitem').allTextContents()).toEqual(['green', 'black'])
      expect(await reply().textContent()).not.toMatch(/\*\*|```|\|---/)
      await reply().locator('.hljs-keyword').getByText('const').waitFor()
      await reply().locator('math').nth(1).waitFor()
      await takeScreenshot(page, `markdown-${mode}`)
    },
  )
})

longTest('[DM16] the chats of one browser are not visible in another', async () => {
  const mine = await testDemo.openPage()
  const { send, log } = chatPage(mine)
  await send('[[say This is between us.]]')
  await log.getByText('This is between us.', { exact: true }).waitFor()

  const theirs = await testDemo.openPage({ url: mine.url() })
  await theirs.getByText('Chat not found').waitFor()
  expect(await theirs.textContent('body')).not.toContain('between us')
})

test('[DM33] every chat has a URL, and the back button returns to it', async () => {
  const page = await testDemo.openPage()
  const { send, log, input } = chatPage(page)
  expect(page.url()).toBe(`${testDemo.demo.url}/`)
  await send('[[say The first chat.]]')
  await log.getByText('The first chat.', { exact: true }).waitFor()
  expect(page.url()).toMatch(/\/\?chat=[\w-]+$/)

  await page.getByRole('button', { name: 'New chat' }).click()
  await page.getByText('What would you like to do?').waitFor()
  expect(page.url()).toBe(`${testDemo.demo.url}/`)
  expect(await input.evaluate((element) => element === document.activeElement)).toBe(true)

  await page.goBack()
  await log.getByText('The first chat.', { exact: true }).waitFor()
})
