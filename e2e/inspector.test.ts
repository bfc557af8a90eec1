import { readFile } from 'node:fs/promises'

import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { modesOf } from './support/modes.ts'
import { readPage } from './support/chat-page.ts'
import { decide } from './support/approvals.ts'
import { readBooks } from './support/payments.ts'
import { snap } from './support/snap.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'

let testDemo: TestDemo
beforeAll(async () => {
  testDemo = await openTestDemo()
})
afterAll(() => testDemo[Symbol.asyncDispose]())
afterEach(() => testDemo.leave())

describe.each(modesOf('sse'))('%s', (mode) => {
  longTest(
    '[IN1] [IN4] the inspector says that it waits for the model, and lists the chunks of a reply with their times',
    async () => {
      const { page, inspector, open } = await inspect(mode)
      const { say, tool, idle, answer } = readPage(page)
      await say(`[[say Well…]][[wait silent-${mode}]][[say That is all.]]`)
      await answer().getByText('Well…').waitFor()
      await inspector.getByText('Waiting for the model.').waitFor()
      testDemo.emulator.release(`silent-${mode}`)
      await inspector.getByText('Idle: waiting for your message.').waitFor()
      expect(testDemo.told(`silent-${mode}`)).toBe(1)
      await idle()

      await say('What is the weather in Tokyo?')
      await tool('get_weather').getByText('Done').waitFor()
      await idle()
      await open('Streams')
      const newest = inspector.locator('.turns > li').first()
      await newest.getByText('Request').waitFor()
      for (const fact of ['first chunk', 'first token', 'total']) {
        await newest.locator('summary').getByText(fact).first().waitFor()
      }
      const types = await newest.locator('.entry code').allTextContents()
      const told = [
        'start',
        'tool-input-available',
        'tool-output-available',
        'text-delta',
        'finish',
      ]
      expect(types.filter((type) => told.includes(type))).toEqual(told)
      await newest.getByRole('img', { name: /call get_weather .*text/ }).waitFor()
      const words = newest.locator('.entry', { has: page.getByText('text-delta', { exact: true }) })
      await words.locator('summary').click()
      await words.locator('pre').getByText('Tokyo').waitFor()
      await snap(page, `timeline-${mode}`)
    },
  )
})

describe.each(modesOf('live'))('%s', (mode) => {
  test('[IN2] [IN4] the inspector shows the steps of an approval, and what it waits for', async () => {
    const { page, inspector, open } = await inspect(mode)
    const { say, tool } = readPage(page)
    const stops = inspector.locator('.stop')
    await inspector.getByText('Idle: waiting for your message.').waitFor()
    await say('Send $50 to Alice')
    const approve = tool('Alice').getByRole('button', { name: 'Approve' })
    await approve.waitFor()
    await inspector
      .getByText(/^Waiting for your decision: Send \$50\.00 to Alice\. Expires at .*\.$/)
      .waitFor()
    await open('Approvals')
    await stops.getByText('decision').waitFor()
    expect(await names(stops)).toEqual(['requested', 'decision', 'start', 'result'])
    await snap(page, `approval-asked-${mode}`)
    const [id = ''] = await readBooks(testDemo, page).pending()

    await approve.click()
    await stops.getByText('done').waitFor()
    expect(await names(stops)).toEqual(['requested', 'approved', 'started', 'done'])
    await inspector.getByText('Idle: waiting for your message.').waitFor()
    await snap(page, `approval-done-${mode}`)
    const books = readBooks(testDemo, page)
    expect(await books.history(id)).toEqual(['requested', 'approved', 'started', 'succeeded'])
    expect(await books.balance()).toBe(950)
  })
})

describe.each(modesOf('live'))('%s', (mode) => {
  longTest('[IN3] sent and received frames are shown and can be filtered', async () => {
    const { page, inspector, open } = await inspect(mode)
    const { say, answer, idle } = readPage(page)
    await say('[[say Over the wire.]]')
    await answer().getByText('Over the wire.').waitFor()
    await idle()
    await open('Wire')
    const line = (direction: 'in' | 'out', type: string) =>
      inspector.locator(`.wire-line[data-direction=${direction}]`, {
        has: page.getByText(type, { exact: true }),
      })
    const sent = line('out', mode === 'live' ? 'send' : 'request').first()
    await sent.locator('summary').click()
    await sent.getByText('Over the wire.').waitFor()
    expect(await line('out', mode === 'live' ? 'send' : 'request').count()).toBe(1)
    await snap(page, `wire-${mode}`)

    const chunk = mode === 'live' ? 'chunk' : 'text-delta'
    const received = inspector.locator('.wire-line[data-direction=in] code')
    await received.getByText(chunk, { exact: true }).first().waitFor()
    const filter = inspector.getByRole('searchbox', { name: 'Filter by type' })
    await filter.fill('end')
    await received.getByText('end', { exact: true }).first().waitFor()
    expect(await received.getByText(chunk, { exact: true }).count()).toBe(0)
    await filter.fill('nothing like it')
    await inspector.getByText('No traffic of a type with “nothing like it”.').waitFor()
  })
})

describe.each(modesOf('sse'))('%s', (mode) => {
  longTest('[IN5] a recording is saved, and its replay is the same at every speed', async () => {
    const { page, inspector, open } = await inspect(mode)
    const { say, tool, answer, idle, log } = readPage(page)
    await open('Recording')
    await inspector.getByRole('button', { name: 'Record', exact: true }).click()
    await say('Send $50 to Alice')
    await tool('Alice').getByRole('button', { name: 'Approve' }).click()
    await answer().getByText('$950').waitFor()
    await idle()
    await inspector.getByRole('button', { name: 'Stop recording' }).click()
    const shown = await textOf(log)
    const recording = await download(page)
    const lines = recording
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object)
    expect(lines.length).toBeGreaterThan(5)
    expect(recording).toContain('tool-approval-request')

    const chooser = inspector.locator('input[type=file]')
    await chooser.setInputFiles(fileOf('{"no":"recording"}\n'))
    await inspector.getByText('This file is not a recording.').waitFor()
    await chooser.setInputFiles(fileOf(recording))
    const replay = page.getByRole('region', { name: 'Replay' })
    await replay.getByText('Finished').waitFor()
    expect(await textOf(replay.getByRole('log'))).toBe(shown)
    await snap(page, `replay-${mode}`)

    await replay.getByLabel('Speed').selectOption('Instant')
    await replay.getByText('Finished').waitFor()
    expect(await textOf(replay.getByRole('log'))).toBe(shown)

    await replay.getByLabel('Speed').selectOption('Step')
    const next = replay.getByRole('button', { name: 'Next step' })
    await replay.getByText('Playing').waitFor()
    expect(await textOf(replay.getByRole('log'))).toBe('')
    // A step more than there are does nothing. A spoken answer has hundreds of steps: the page presses the button itself.
    await next.evaluate(async (button: HTMLElement) => {
      const view = button.closest('.replay')
      while (button.isConnected && !view?.textContent.includes('Finished')) {
        button.click()
        await new Promise((resolve) => setTimeout(resolve))
      }
    })
    await replay.getByText('Finished').waitFor()
    expect(await textOf(replay.getByRole('log'))).toBe(shown)

    await replay.getByRole('button', { name: 'Back to the chat' }).click()
    await log.waitFor()
    expect(await textOf(log)).toBe(shown)
    expect(await readBooks(testDemo, page).balance()).toBe(950)
  })
})

test('[IN380] [IN382] the timeline comes from the server: it is kept after a reload, shows the vote, and links to the card and back', async () => {
  const { page, inspector } = await inspect('sse')
  const { say, tool } = readPage(page)
  await say('Send $600 to Bob')
  await decide(tool('Bob'), 'approve')
  const waiting =
    /^Waiting for a second approver: Send \$600\.00 to Bob\. 1 of 2 approved, including you\./
  await inspector.getByText(waiting).waitFor()
  await page.reload()
  await inspector.getByText(waiting).waitFor()
  const wait = inspector.locator('.row[data-lane=wait]')
  const summary = wait.locator('summary')
  await summary.getByText('Send $600.00 to Bob').waitFor()
  // The list is drawn again while the page loads, so the focus and the key go to the same element.
  await summary.press('Enter')
  await wait.getByText('Approved by').waitFor()
  await wait.getByText(/^you · /).waitFor()
  await snap(page, 'timeline-waiting')

  // From the entry to the card, and back.
  await wait.getByRole('button', { name: 'Show in the chat' }).press('Enter')
  expect(await tool('Bob').evaluate((card) => card === document.activeElement)).toBe(true)
  await page.keyboard.press('Alt+KeyJ')
  await expect.poll(() => summary.evaluate((row) => row === document.activeElement)).toBe(true)
  expect(await summary.getAttribute('aria-current')).toBe('true')
})

test('[IN381] [IN530] the entry of a model call shows its tokens, the request and the reply', async () => {
  const { page, inspector, open } = await inspect('sse')
  const { say, idle } = readPage(page)
  await say('[[say Hello from the model.]]')
  await idle()
  await open('Timeline')
  // The entry of a running call is replaced when the call has ended.
  await inspector.getByText('Idle: waiting for your message.').waitFor()
  const entry = inspector.locator('.row[data-lane="model"]').first()
  await entry.locator('summary').first().click()
  await entry.getByText('Tokens').waitFor()
  await entry.getByText('Request and reply of the model').click()
  const [request, reply] = [entry.locator('pre').first(), entry.locator('pre').nth(1)]
  await request.getByText('process_payment').waitFor()
  await expect.poll(() => reply.textContent()).toContain('Hello from the model.')
  await snap(page, 'model-call')
})

longTest(
  '[IN383] a replay shows the recorded time and votes with disabled buttons, and its position can be changed',
  async () => {
    const { page, inspector, open } = await inspect('sse')
    const { say, tool } = readPage(page)
    await open('Recording')
    await inspector.getByRole('button', { name: 'Record', exact: true }).click()
    await say('Send $600 to Bob')
    await decide(tool('Bob'), 'approve')
    await inspector.getByText(/^Waiting for a second approver/).waitFor()
    const voted = tool('Bob').getByText(/1 of 2/)
    await voted.waitFor()
    const shown = await voted.textContent()
    await inspector.getByRole('button', { name: 'Stop recording' }).click()
    await inspector.getByRole('button', { name: 'Play', exact: true }).click()
    const replay = page.getByRole('region', { name: 'Replay' })
    await replay.getByLabel('Speed').selectOption('Instant')
    await replay.getByText('Finished').waitFor()
    const card = replay.locator('.adk-approval')
    await card.getByText(shown ?? '', { exact: true }).waitFor()
    const time = await card.getByRole('timer').textContent()
    await snap(page, 'replay-voted')

    // Before the vote, the card asks, and its button has no effect.
    const position = replay.getByRole('slider', { name: 'Position in the recording' })
    const approve = card.getByRole('button', { name: /Approve/ })
    await position.focus()
    await expect
      .poll(async () => {
        await position.press('ArrowLeft')
        return approve.count()
      })
      .toBe(1)
    expect(await approve.isDisabled()).toBe(true)
    await position.press('End')
    await replay.getByText('Finished').waitFor()
    expect(await card.getByRole('timer').textContent()).toBe(time)
  },
)

async function inspect(mode: 'sse' | 'live') {
  const page = await testDemo.visit({ mode, viewport: { width: 1440, height: 900 } })
  await page.getByRole('button', { name: 'Show inspector' }).click()
  const inspector = page.getByRole('complementary', { name: 'Inspector' })
  await inspector.waitFor()
  const open = (name: string) => inspector.getByRole('tab', { name }).click()
  return { page, inspector, open }
}

function names(stops: ReturnType<Page['locator']>): Promise<string[]> {
  return stops.locator('.stop-name').allTextContents()
}

/** What was said and done in a conversation; not the buttons below it, which a replay has not. */
async function textOf(log: ReturnType<Page['locator']>): Promise<string> {
  const parts = await log.locator('.adk-said, .markdown, .adk-tool').allInnerTexts()
  return parts.join('\n')
}

async function download(page: Page): Promise<string> {
  const downloading = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download' }).click()
  const file = await downloading
  expect(file.suggestedFilename()).toMatch(/^conversation-.*\.jsonl$/)
  return readFile(await file.path(), 'utf8')
}

function fileOf(text: string) {
  return { name: 'conversation.jsonl', mimeType: 'application/jsonl', buffer: Buffer.from(text) }
}
