import { readFile } from 'node:fs/promises'

import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { testModes } from './support/modes.ts'
import { chatPage } from './support/chat-page.ts'
import { decide } from './support/approvals.ts'
import { expectCounts } from './support/app-shell.ts'
import { readAccount } from './support/account.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

describe.each(testModes('sse'))('%s', (mode) => {
  longTest(
    '[IN1] [IN4] the inspector shows that the model has not replied yet, and lists the chunks of a reply with their times',
    async () => {
      const { page, inspector, open } = await openInspector(mode)
      const { send, tool, waitUntilIdle, reply } = chatPage(page)
      await send(`[[say Well…]][[wait silent-${mode}]][[say That is all.]]`)
      await reply().getByText('Well…').waitFor()
      await inspector.getByText('Waiting for the model.').waitFor()
      testDemo.emulator.release(`silent-${mode}`)
      await inspector.getByText('Idle: waiting for your message.').waitFor()
      expect(testDemo.countSentToModel(`silent-${mode}`)).toBe(1)
      await waitUntilIdle()

      await send('What is the weather in Tokyo?')
      await tool('get_weather').getByText('Done').waitFor()
      await waitUntilIdle()
      await open('Streams')
      const newest = inspector.locator('.turns > li').first()
      await newest.getByText('Request').waitFor()
      for (const label of ['first chunk', 'first token', 'total']) {
        await newest.locator('summary').getByText(label).first().waitFor()
      }
      const types = await newest.locator('.entry code').allTextContents()
      const expected = [
        'start',
        'tool-input-available',
        'tool-output-available',
        'text-delta',
        'finish',
      ]
      expect(types.filter((type) => expected.includes(type))).toEqual(expected)
      await newest.getByRole('img', { name: /call get_weather .*text/ }).waitFor()
      const delta = newest.locator('.entry', { has: page.getByText('text-delta', { exact: true }) })
      await delta.locator('summary').click()
      await delta.locator('pre').getByText('Tokyo').waitFor()
      await takeScreenshot(page, `timeline-${mode}`)
    },
  )
})

describe.each(testModes('live'))('%s', (mode) => {
  longTest(
    '[IN2] [IN4] the inspector shows the steps of an approval, and that a decision is pending',
    async () => {
      const { page, inspector, open } = await openInspector(mode)
      const { send, tool } = chatPage(page)
      const stops = inspector.locator('.stop')
      await inspector.getByText('Idle: waiting for your message.').waitFor()
      await send('Send $50 to Alice')
      const approve = tool('Alice').getByRole('button', { name: 'Approve' })
      await approve.waitFor()
      await inspector
        .getByText(/^Waiting for your decision: Send \$50\.00 to Alice\. Expires at .*\.$/)
        .waitFor()
      await open('Approvals')
      await stops.getByText('decision').waitFor()
      expect(await readNames(stops)).toEqual(['requested', 'decision', 'start', 'result'])
      await takeScreenshot(page, `approval-requested-${mode}`)
      const [id = ''] = await readAccount(testDemo, page).pendingApprovals()

      await approve.click()
      await stops.getByText('done').waitFor()
      expect(await readNames(stops)).toEqual(['requested', 'approved', 'started', 'done'])
      await inspector.getByText('Idle: waiting for your message.').waitFor()
      await takeScreenshot(page, `approval-done-${mode}`)
      const account = readAccount(testDemo, page)
      expect(await account.history(id)).toEqual(['requested', 'approved', 'started', 'succeeded'])
      expect(await account.balance()).toBe(950)
    },
  )
})

describe.each(testModes('live'))('%s', (mode) => {
  longTest('[IN3] sent and received frames are shown and can be filtered', async () => {
    const { page, inspector, open } = await openInspector(mode)
    const { send, reply, waitUntilIdle } = chatPage(page)
    await send('[[say Over the wire.]]')
    await reply().getByText('Over the wire.').waitFor()
    await waitUntilIdle()
    await open('Wire')
    const line = (direction: 'in' | 'out', type: string) =>
      inspector.locator(`.wire-line[data-direction=${direction}]`, {
        has: page.getByText(type, { exact: true }),
      })
    const sent = line('out', mode === 'live' ? 'send' : 'request').first()
    await sent.locator('summary').click()
    await sent.getByText('Over the wire.').waitFor()
    expect(await line('out', mode === 'live' ? 'send' : 'request').count()).toBe(1)
    await takeScreenshot(page, `wire-${mode}`)

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

describe.each(testModes('sse'))('%s', (mode) => {
  longTest('[IN5] a recording is saved, and its replay is the same at every speed', async () => {
    const { page, inspector, open } = await openInspector(mode)
    const { send, tool, reply, waitUntilIdle, log } = chatPage(page)
    await open('Recording')
    await inspector.getByRole('button', { name: 'Record', exact: true }).click()
    await send('Send $50 to Alice')
    await tool('Alice').getByRole('button', { name: 'Approve' }).click()
    await reply().getByText('$950').waitFor()
    await waitUntilIdle()
    await inspector.getByRole('button', { name: 'Stop recording' }).click()
    const shown = await readText(log)
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
    expect(await readText(replay.getByRole('log'))).toBe(shown)
    await takeScreenshot(page, `replay-${mode}`)

    await replay.getByLabel('Speed').selectOption('Instant')
    await replay.getByText('Finished').waitFor()
    expect(await readText(replay.getByRole('log'))).toBe(shown)

    await replay.getByLabel('Speed').selectOption('Step')
    const next = replay.getByRole('button', { name: 'Next step' })
    await replay.getByText('Playing').waitFor()
    expect(await readText(replay.getByRole('log'))).toBe('')
    // A step after the last one has no effect. A spoken reply has hundreds of steps, so a script in the page clicks the button.
    await next.evaluate(async (button: HTMLElement) => {
      const view = button.closest('.replay')
      while (button.isConnected && !view?.textContent.includes('Finished')) {
        button.click()
        await new Promise((resolve) => setTimeout(resolve))
      }
    })
    await replay.getByText('Finished').waitFor()
    expect(await readText(replay.getByRole('log'))).toBe(shown)

    await replay.getByRole('button', { name: 'Back to the chat' }).click()
    await log.waitFor()
    expect(await readText(log)).toBe(shown)
    expect(await readAccount(testDemo, page).balance()).toBe(950)
  })
})

test('[IN380] [IN382] [DM39] [SD1971] the timeline comes from the server: it is kept after a reload, shows the vote, and links to the card and back; the agent and what waits are a tab', async () => {
  const { page, inspector, open } = await openInspector('sse')
  const { send, tool } = chatPage(page)
  await send('Send $600 to Bob')
  await decide(tool('Bob'), 'approve')
  const waiting =
    /^Waiting for a second approver: Send \$600\.00 to Bob\. 1 of 2 approved, including you\./
  await inspector.getByText(waiting).waitFor()
  await expectCounts(page, 0)
  await page.reload()
  await inspector.getByText(waiting).waitFor()
  const wait = inspector.locator('.row[data-lane=wait]')
  const summary = wait.locator('summary').first()
  await summary.getByText('Send $600.00 to Bob').waitFor()
  // The list renders again while the page loads. `press` focuses the element and presses the key in one step.
  await summary.press('Enter')
  await wait.getByText('Approved by').waitFor()
  await wait.getByText(/^you · /).waitFor()
  await takeScreenshot(page, 'timeline-waiting')

  await wait.getByRole('button', { name: 'Show in the chat' }).press('Enter')
  expect(await tool('Bob').evaluate((card) => card === document.activeElement)).toBe(true)
  await page.keyboard.press('Alt+KeyJ')
  await expect.poll(() => summary.evaluate((row) => row === document.activeElement)).toBe(true)
  expect(await summary.getAttribute('aria-current')).toBe('true')

  await open('Agent')
  // Agents that are used as tools have the tool, too.
  const node = inspector.locator('.agent-node', { hasText: 'process_payment' }).first()
  await expect.poll(() => node.getAttribute('aria-current')).toBe('step')
})

longTest(
  '[IN381] [IN530] the entry of a model call shows its tokens, the request and the reply',
  async () => {
    const { page, inspector, open } = await openInspector('sse')
    const { send, waitUntilIdle } = chatPage(page)
    await send('[[say Hello from the model.]]')
    await waitUntilIdle()
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
    await takeScreenshot(page, 'model-call')
  },
)

longTest(
  '[IN383] a replay shows the recorded time and votes with disabled buttons, and its position can be changed',
  async () => {
    const { page, inspector, open } = await openInspector('sse')
    const { send, tool } = chatPage(page)
    await open('Recording')
    await inspector.getByRole('button', { name: 'Record', exact: true }).click()
    await send('Send $600 to Bob')
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
    await takeScreenshot(page, 'replay-voted')

    // Before the vote, the approval is pending, and its button is disabled.
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

async function openInspector(mode: 'sse' | 'live') {
  const page = await testDemo.openPage({ mode, viewport: { width: 1440, height: 900 } })
  await page.getByRole('button', { name: 'Show inspector' }).click()
  const inspector = page.getByRole('complementary', { name: 'Inspector' })
  await inspector.waitFor()
  const open = (name: string) => inspector.getByRole('tab', { name }).click()
  return { page, inspector, open }
}

function readNames(stops: ReturnType<Page['locator']>): Promise<string[]> {
  return stops.locator('.stop-name').allTextContents()
}

/** Returns the text of messages and cards. It omits the buttons below them, which a replay does not have. */
async function readText(log: ReturnType<Page['locator']>): Promise<string> {
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
