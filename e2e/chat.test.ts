import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { modesOf } from './support/modes.ts'
import { readPage } from './support/chat-page.ts'
import { snap } from './support/snap.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'

let testDemo: TestDemo
beforeAll(async () => {
  testDemo = await openTestDemo()
})
afterAll(() => testDemo[Symbol.asyncDispose]())
afterEach(() => testDemo.leave())

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

/** One language in each mode. In `npm test`, each of the two tests runs in one of them. */
const LANGUAGES = {
  sse: ['Japanese', '空が青いのは、', '光が散乱するからです。'],
  live: ['English', 'The sky is blue.', 'Light scatters.'],
} as const
const WEATHER = {
  sse: ['en', 'What is the weather in Tokyo?', /18/],
  live: ['ja', '東京の天気は?', /18/],
} as const

describe.each(modesOf('sse'))('%s', (mode) => {
  test.each([LANGUAGES[mode]])(
    '[DM20] a reply in %s is shown while it is streamed',
    async (name, first, second) => {
      const page = await testDemo.visit({ mode })
      const { say, answer, idle } = readPage(page)
      const gate = `${name}-${mode}`
      await say(`[[say ${first}]][[wait ${gate}]][[say ${second}]]`)

      await answer().getByText(first).waitFor()
      expect(await answer().textContent()).not.toContain(second)
      await snap(page, `writing-${gate}`)

      testDemo.emulator.release(gate)
      await answer().getByText(second).waitFor()
      await idle()
      expect(await answer().locator('.markdown').textContent()).toMatch(
        new RegExp(`^${first} ?${second}$`),
      )
      expect(testDemo.told(gate)).toBe(1)
    },
  )
})

describe.each(modesOf('live'))('%s', (mode) => {
  test.each([WEATHER[mode]])(
    '[DM21] [DM24] a tool call and the reply are shown, and shown again after a reload: %s',
    async (name, question, words) => {
      const page = await testDemo.visit({ mode })
      const { say, tool, answers, idle, log } = readPage(page)
      await say(question)
      await tool('get_weather').getByText('Done').waitFor()
      await expect
        .poll(() => answers.last().locator('.markdown').last().textContent())
        .toMatch(words)
      await idle()
      const before = await log.textContent()
      await page.reload()
      await tool('get_weather').waitFor()
      expect(await log.textContent()).toBe(before)

      await tool('get_weather').getByText('Details').click()
      const details = await tool('get_weather').locator('pre').allTextContents()
      expect(JSON.parse(details[0] ?? '')).toEqual({ location: 'Tokyo' })
      expect(JSON.parse(details[1] ?? '')).toMatchObject({ temperature: 18, condition: 'Cloudy' })
      expect(await tool('get_weather').count()).toBe(1)
      await snap(page, `weather-${name}-${mode}`)
    },
  )
})

describe.each(modesOf('sse'))('%s', (mode) => {
  test('[DM21] [DM532] a reply shows pictures, sources and code, and the inspector its tokens', async () => {
    const page = await testDemo.visit({ mode })
    const { say, answer, idle } = readPage(page)
    await say(
      '[[say See for yourself.]][[image #1f6b5a]][[code print(6 * 7) => 42]][[ground https://example.com/sky The sky]]',
    )
    const picture = answer().getByRole('img')
    await picture.waitFor()
    await idle()
    // The browser decodes a picture after it is in the page.
    const width = () => picture.evaluate((image: HTMLImageElement) => image.naturalWidth)
    await expect.poll(width).toBeGreaterThan(0)
    await answer().getByText('print(6 * 7)').waitFor()
    await answer().getByText('42', { exact: true }).waitFor()
    const source = answer().getByRole('link', { name: 'The sky' })
    expect(await source.getAttribute('href')).toBe('https://example.com/sky')
    const tokens = answer().getByText(/\d+ tokens in, \d+ out/)
    expect(await tokens.isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Show inspector' }).click()
    await tokens.waitFor()
    await snap(page, `parts-${mode}`)
  })
})

describe.each(modesOf('live'))('%s', (mode) => {
  test('[DM20] the page shows that the model is thinking until the first text; thoughts are collapsed and can be opened', async () => {
    const page = await testDemo.visit({ mode })
    const { say, answer } = readPage(page)
    await say(`[[wait think-${mode}]][[think I look at the sky.]][[say It is blue.]]`)
    await page.getByText('Thinking…').waitFor()
    testDemo.emulator.release(`think-${mode}`)
    await answer().getByText('It is blue.').waitFor()
    expect(await page.getByText('Thinking…').count()).toBe(0)
    const thoughts = answer().getByText('I look at the sky.')
    expect(await thoughts.isVisible()).toBe(false)
    await answer().getByText('Reasoning').click()
    await thoughts.waitFor()
    await snap(page, `thoughts-${mode}`)
  })
})

describe.each(modesOf('sse'))('%s', (mode) => {
  test('[DM80] [DM530] [DM531] Markdown is shown as headings, lists, tables, highlighted code and formulas', async () => {
    testDemo.answer('about tea', () => [{ type: 'say', text: RICH }])
    const page = await testDemo.visit({ mode })
    const { say, answer, idle } = readPage(page)
    await say('Tell me about tea')
    await answer().locator('pre code').getByText('const cups = 2').waitFor()
    await idle()
    await answer().getByRole('heading', { name: 'Tea' }).waitFor()
    await answer().getByRole('cell', { name: '東京' }).waitFor()
    expect(await answer().getByRole('listitem').allTextContents()).toEqual(['green', 'black'])
    expect(await answer().textContent()).not.toMatch(/\*\*|```|\|---/)
    await answer().locator('.hljs-keyword').getByText('const').waitFor()
    await answer().locator('math').nth(1).waitFor()
    await snap(page, `markdown-${mode}`)
  })
})

longTest('[DM16] the chats of one browser are not visible in another', async () => {
  const mine = await testDemo.visit()
  const { say, log } = readPage(mine)
  await say('[[say This is between us.]]')
  await log.getByText('This is between us.', { exact: true }).waitFor()

  const theirs = await testDemo.visit({ url: mine.url() })
  await theirs.getByText('Chat not found').waitFor()
  expect(await theirs.textContent('body')).not.toContain('between us')
})

test('[DM33] every chat has a URL, and the back button returns to it', async () => {
  const page = await testDemo.visit()
  const { say, log, input } = readPage(page)
  expect(page.url()).toBe(`${testDemo.demo.url}/`)
  await say('[[say The first chat.]]')
  await log.getByText('The first chat.', { exact: true }).waitFor()
  expect(page.url()).toMatch(/\/\?chat=[\w-]+$/)

  await page.getByRole('button', { name: 'New chat' }).click()
  await page.getByText('What would you like to do?').waitFor()
  expect(page.url()).toBe(`${testDemo.demo.url}/`)
  expect(await input.evaluate((element) => element === document.activeElement)).toBe(true)

  await page.goBack()
  await log.getByText('The first chat.', { exact: true }).waitFor()
})
