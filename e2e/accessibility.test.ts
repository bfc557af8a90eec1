import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { takeTurns } from '../test/support/take-turns.ts'
import { waitForChangedPreview } from './support/approvals.ts'
import { chatPage } from './support/chat-page.ts'
import { isFocused } from './support/app-shell.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { readAccount } from './support/account.ts'
import { OVERLAYS, findViolations } from './support/axe-violations.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

const WIDE = { width: 1440, height: 900 }
const PHONE = { viewport: { width: 375, height: 740 }, hasTouch: true, isMobile: true }

/** The labels of the elements that the tests use. */
const LABELS = {
  'en-US': {
    welcome: 'What would you like to do?',
    deny: 'Deny…',
    edit: 'Edit…',
    record: 'Record',
    stopRecording: 'Stop recording',
    play: 'Play',
    chats: 'Show chats',
  },
  'ja-JP': {
    welcome: '何をお手伝いしましょうか？',
    deny: '拒否…',
    edit: '編集…',
    record: '記録を開始',
    stopRecording: '記録を停止',
    play: '再生',
    chats: 'チャット一覧を表示',
  },
} as const

/** Each language and each colour scheme once. In `npm test`, each variant runs half of the tests. */
const VARIANTS = [
  { locale: 'en-US', colorScheme: 'light' },
  { locale: 'ja-JP', colorScheme: 'dark' },
] as const

describe.each(VARIANTS)('in $locale and $colorScheme', ({ locale, colorScheme }) => {
  const group = VARIANTS.findIndex((each) => each.locale === locale)
  const it = takeTurns({ group, groups: VARIANTS.length })
  const options = { locale, colorScheme, viewport: WIDE }
  const labels = LABELS[locale]
  const findViolationsOf = async (
    page: Page,
    name: string,
    within?: string,
  ): Promise<unknown[]> => {
    await takeScreenshot(page, `axe-${name}-${locale}-${colorScheme}`)
    return findViolations(page, within)
  }

  longTest('[DM26] axe finds no violation on the start page and with an error', async () => {
    const page = await testDemo.openPage(options)
    await page.getByText(labels.welcome).waitFor()
    expect(await findViolationsOf(page, 'welcome')).toEqual([])
    await chatPage(page).send('[[fail 429 retry=7 quota]]')
    await chatPage(page).problem.waitFor()
    expect(await findViolationsOf(page, 'problem')).toEqual([])
  })

  it('[DM26] axe finds no violation in approval cards and in the inbox', async () => {
    const page = await testDemo.openPage({ ...options, mode: 'live' })
    const { send, log } = chatPage(page)
    await send('Send $120 to Alice and $600 to Bob')
    const decline = log.getByRole('button', { name: labels.deny })
    await decline.nth(1).waitFor()
    expect(await findViolationsOf(page, 'pending')).toEqual([])
    await log.getByRole('button', { name: labels.edit }).first().click()
    await decline.last().click()
    expect(await findViolationsOf(page, 'deciding', '[role=log]')).toEqual([])
    await page.keyboard.press('Alt+KeyI')
    await page.locator('.popover.inbox').getByRole('listitem').first().waitFor()
    expect(await findViolationsOf(page, 'inbox', OVERLAYS)).toEqual([])
  })

  longTest('[DM26] axe finds no violation in the tabs of the inspector', async () => {
    const page = await testDemo.openPage({ ...options, mode: 'live' })
    const { send, log } = chatPage(page)
    await showInspector(page)
    const tabs = page.getByRole('complementary').getByRole('tab')
    await tabs.first().waitFor()
    await send('Send $120 to Alice')
    await log.getByRole('button', { name: labels.deny }).waitFor()
    for (const tab of await tabs.all()) {
      await tab.click()
      expect(
        await findViolationsOf(page, `inspector-${await tab.getAttribute('data-tab')}`, 'aside'),
      ).toEqual([])
    }
  })

  longTest('[DM26] axe finds no violation in a replay, in direct mode and on a phone', async () => {
    const page = await testDemo.openPage(options)
    const { send, reply, waitUntilIdle } = chatPage(page)
    await showInspector(page)
    const inspector = page.getByRole('complementary')
    await inspector.getByRole('tab').last().click()
    await inspector.getByRole('button', { name: labels.record, exact: true }).click()
    await send('[[think So.]][[say Recorded.]]')
    await reply().getByText('Recorded.').waitFor()
    await waitUntilIdle()
    await inspector.getByRole('button', { name: labels.stopRecording }).click()
    await inspector.getByRole('button', { name: labels.play, exact: true }).click()
    await page.locator('.replay').getByText('Recorded.', { exact: true }).waitFor()
    expect(await findViolationsOf(page, 'replay')).toEqual([])

    const direct = await testDemo.openPage({ ...options, mode: 'direct' })
    await chatPage(direct).send('Send $50 to Alice')
    await chatPage(direct).log.getByRole('button', { name: labels.deny }).waitFor()
    expect(await findViolationsOf(direct, 'direct')).toEqual([])

    const phone = await testDemo.openPage({ ...options, ...PHONE })
    await phone.getByRole('button', { name: labels.chats }).click()
    await phone.getByRole('dialog').waitFor()
    expect(await findViolationsOf(phone, 'drawer', OVERLAYS)).toEqual([])
  })
})

// In `npm test`, the component tests cover the announcements.
longTest.each(['live'] as const)(
  '[DM92] a pending approval and its outcome are announced, over %s',
  async (mode) => {
    const page = await testDemo.openPage({ mode })
    const { send, log, tool } = chatPage(page)
    await send('Send $50 to Alice')
    const status = log.getByRole('group', { name: 'Alice' }).getByRole('status')
    await status.getByText('Waiting for your decision.').waitFor({ state: 'attached' })
    await page
      .locator('.adk-messages + [aria-live=polite]')
      .getByText('Waiting for your decision. Payment: Send $50.00 to Alice Medium risk')
      .waitFor({ state: 'attached' })
    await tool('Alice').getByRole('button', { name: 'Approve' }).click()
    await status.getByText('Approved.').waitFor()
    expect(await readAccount(testDemo, page).balance()).toBe(950)
  },
)

longTest('[DM26] [DM67] the whole page can be used with the keyboard alone', async () => {
  const page = await testDemo.openPage({ viewport: WIDE })
  const { input, reply, replies, stop, tool, waitUntilIdle, log } = chatPage(page)
  const account = readAccount(testDemo, page)
  const press = (...keys: string[]) =>
    keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve())
  const typeAndSend = async (text: string) => {
    await page.keyboard.type(text)
    await press('Enter')
  }
  /** Presses Tab or Shift+Tab until the element with this name has the focus. */
  const tabTo = async (name: string | RegExp, key = 'Tab') => {
    const target = page
      .locator(':focus')
      .and(page.getByLabel(name).or(page.getByRole('button', { name })))
    for (let steps = 0; steps < 40 && (await target.count()) === 0; steps += 1) await press(key)
    expect(await target.count()).toBe(1)
  }

  await input.waitFor()
  await press('Alt+KeyN')
  expect(await isFocused(input)).toBe(true)
  await typeAndSend('[[say Wait for it]][[wait stop]]')
  await reply().getByText('Wait for it').waitFor()
  await tabTo('Stop')
  await press('Enter')
  await stop.waitFor({ state: 'detached' })
  await waitUntilIdle()

  await press('Alt+KeyM')
  await tabTo('Try again', 'Shift+Tab')
  await press('Enter')
  await stop.waitFor()
  testDemo.emulator.release('stop')
  await waitUntilIdle()
  expect(await replies.count()).toBe(1)

  await press('Alt+KeyM')
  await typeAndSend('Send $30 to Alice and $40 to Bob')
  await tool('Bob').getByRole('button', { name: 'Approve' }).waitFor()
  await waitUntilIdle()
  await press('Alt+KeyA')
  await tabTo('Approve')
  await press('Enter')
  await tool('Alice').getByText('Approved.').waitFor()

  await press('Alt+KeyI')
  const item = page.locator('.popover.inbox').getByRole('listitem', { name: 'Bob' })
  await item.waitFor()
  await waitForChangedPreview(item)
  await tabTo('Approve')
  await press('Enter')
  await tool('Bob').getByText('Approved.').waitFor()
  await press('Escape')
  await waitUntilIdle()
  expect(await account.balance()).toBe(930)

  await tabTo(/^Chat\s*Write/, 'Shift+Tab')
  await press('ArrowRight')
  await page.getByRole('button', { name: 'Hold to talk' }).waitFor()
  await press('Alt+KeyL')
  await page.getByRole('tab', { name: 'Timeline' }).waitFor()
  await tabTo('Hide inspector')
  for (let steps = 0; steps < 5; steps += 1) await press('Tab')
  await press('Alt+KeyL')
  await page.getByRole('tab', { name: 'Timeline' }).waitFor({ state: 'detached' })
  const chats = page.getByRole('navigation', { name: 'Chats' })
  await press('Alt+KeyC')
  await chats.waitFor({ state: 'detached' })
  await press('Alt+KeyC')
  await chats.waitFor()

  await press('Alt+KeyM')
  await tabTo('Settings', 'Shift+Tab')
  await page.keyboard.type('?')
  const keys = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
  await keys.getByText('Alt+N').waitFor()
  await press('Escape')
  await keys.waitFor({ state: 'hidden' })
  await tabTo('Settings', 'Shift+Tab')
  await press('Enter')
  await tabTo('English')
  await press('ArrowRight')
  await page.getByRole('heading', { name: '設定' }).waitFor()
  await press('ArrowLeft')
  await press('Escape')
  await press('Alt+KeyM')
  expect(await isFocused(input)).toBe(true)
  expect(await log.getByRole('article').count()).toBe(4)
})

async function showInspector(page: Page): Promise<void> {
  const { input } = chatPage(page)
  // The page handles shortcuts once the input has the focus.
  await expect.poll(() => isFocused(input)).toBe(true)
  await page.keyboard.press('Alt+KeyL')
}
