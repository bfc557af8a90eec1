import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { takeTurns } from '../test/support/take-turns.ts'
import { untilChanged } from './support/approvals.ts'
import { readPage } from './support/chat-page.ts'
import { isFocused } from './support/shell-page.ts'
import { snap } from './support/snap.ts'
import { readBooks } from './support/payments.ts'
import { OVERLAYS, violations } from './support/violations.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'

let testDemo: TestDemo
beforeAll(async () => {
  testDemo = await openTestDemo()
})
afterAll(() => testDemo[Symbol.asyncDispose]())
afterEach(() => testDemo.leave())

const WIDE = { width: 1440, height: 900 }
const PHONE = { viewport: { width: 375, height: 740 }, hasTouch: true, isMobile: true }

/** What the reader finds things by. */
const WORDS = {
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

/** Colours differ by scheme, names by language: two readers see all of them. In `npm test` each sees half of the screens. */
const READERS = [
  { locale: 'en-US', colorScheme: 'light' },
  { locale: 'ja-JP', colorScheme: 'dark' },
] as const

describe.each(READERS)('in $locale and $colorScheme', ({ locale, colorScheme }) => {
  const group = READERS.findIndex((each) => each.locale === locale)
  const it = takeTurns({ group, groups: READERS.length })
  const reader = { locale, colorScheme, viewport: WIDE }
  const words = WORDS[locale]
  const look = async (page: Page, name: string, within?: string): Promise<unknown[]> => {
    await snap(page, `axe-${name}-${locale}-${colorScheme}`)
    return violations(page, within)
  }

  it('[DM26] axe finds no violation on the start page and with an error', async () => {
    const page = await testDemo.visit(reader)
    await page.getByText(words.welcome).waitFor()
    expect(await look(page, 'welcome')).toEqual([])
    await readPage(page).say('[[fail 429 retry=7 quota]]')
    await readPage(page).problem.waitFor()
    expect(await look(page, 'problem')).toEqual([])
  })

  it('[DM26] axe finds no violation in approval cards and in the inbox', async () => {
    const page = await testDemo.visit({ ...reader, mode: 'live' })
    const { say, log } = readPage(page)
    await say('Send $120 to Alice and $600 to Bob')
    const decline = log.getByRole('button', { name: words.deny })
    await decline.nth(1).waitFor()
    expect(await look(page, 'pending')).toEqual([])
    await log.getByRole('button', { name: words.edit }).first().click()
    await decline.last().click()
    expect(await look(page, 'deciding', '[role=log]')).toEqual([])
    await page.keyboard.press('Alt+KeyI')
    await page.locator('.popover.inbox').getByRole('listitem').first().waitFor()
    expect(await look(page, 'inbox', OVERLAYS)).toEqual([])
  })

  longTest('[DM26] axe finds no violation in the tabs of the inspector', async () => {
    const page = await testDemo.visit({ ...reader, mode: 'live' })
    const { say, log } = readPage(page)
    await showInspector(page)
    const tabs = page.getByRole('complementary').getByRole('tab')
    await tabs.first().waitFor()
    await say('Send $120 to Alice')
    await log.getByRole('button', { name: words.deny }).waitFor()
    for (const tab of await tabs.all()) {
      await tab.click()
      expect(await look(page, `inspector-${await tab.getAttribute('data-tab')}`, 'aside')).toEqual(
        [],
      )
    }
  })

  longTest('[DM26] axe finds no violation in a replay, in direct mode and on a phone', async () => {
    const page = await testDemo.visit(reader)
    const { say, answer, idle } = readPage(page)
    await showInspector(page)
    const inspector = page.getByRole('complementary')
    await inspector.getByRole('tab').last().click()
    await inspector.getByRole('button', { name: words.record, exact: true }).click()
    await say('[[think So.]][[say Recorded.]]')
    await answer().getByText('Recorded.').waitFor()
    await idle()
    await inspector.getByRole('button', { name: words.stopRecording }).click()
    await inspector.getByRole('button', { name: words.play, exact: true }).click()
    await page.locator('.replay').getByText('Recorded.', { exact: true }).waitFor()
    expect(await look(page, 'replay')).toEqual([])

    const direct = await testDemo.visit({ ...reader, mode: 'direct' })
    await readPage(direct).say('Send $50 to Alice')
    await readPage(direct).log.getByRole('button', { name: words.deny }).waitFor()
    expect(await look(direct, 'direct')).toEqual([])

    const phone = await testDemo.visit({ ...reader, ...PHONE })
    await phone.getByRole('button', { name: words.chats }).click()
    await phone.getByRole('dialog').waitFor()
    expect(await look(phone, 'drawer', OVERLAYS)).toEqual([])
  })
})

// In `npm test`, the announcements of the components are tested without a page.
longTest.each(['live'] as const)(
  '[DM92] a pending approval and its outcome are announced, over %s',
  async (mode) => {
    const page = await testDemo.visit({ mode })
    const { say, log, tool } = readPage(page)
    await say('Send $50 to Alice')
    const status = log.getByRole('group', { name: 'Alice' }).getByRole('status')
    await status.getByText('Waiting for your decision.').waitFor({ state: 'attached' })
    await page
      .getByRole('status')
      .getByText('Approval needed: Send $50.00 to Alice, medium risk')
      .waitFor({ state: 'attached' })
    await tool('Alice').getByRole('button', { name: 'Approve' }).click()
    await status.getByText('Approved.').waitFor()
    expect(await readBooks(testDemo, page).balance()).toBe(950)
  },
)

test('[DM26] [DM67] the whole page can be used with the keyboard alone', async () => {
  const page = await testDemo.visit({ viewport: WIDE })
  const { input, answer, answers, stop, tool, idle, log } = readPage(page)
  const books = readBooks(testDemo, page)
  const press = (...keys: string[]) =>
    keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve())
  const write = async (text: string) => {
    await page.keyboard.type(text)
    await press('Enter')
  }
  /** Tab, or Shift+Tab, until something has the focus. */
  const reach = async (name: string | RegExp, key = 'Tab') => {
    const target = page
      .locator(':focus')
      .and(page.getByLabel(name).or(page.getByRole('button', { name })))
    for (let steps = 0; steps < 40 && (await target.count()) === 0; steps += 1) await press(key)
    expect(await target.count()).toBe(1)
  }

  await input.waitFor()
  await press('Alt+KeyN')
  expect(await isFocused(input)).toBe(true)
  await write('[[say Wait for it]][[wait walk]]')
  await answer().getByText('Wait for it').waitFor()
  await reach('Stop')
  await press('Enter')
  await stop.waitFor({ state: 'detached' })
  await idle()

  await press('Alt+KeyM')
  await reach('Try again', 'Shift+Tab')
  await press('Enter')
  await stop.waitFor()
  testDemo.emulator.release('walk')
  await idle()
  expect(await answers.count()).toBe(1)

  await press('Alt+KeyM')
  await write('Send $30 to Alice and $40 to Bob')
  await tool('Bob').getByRole('button', { name: 'Approve' }).waitFor()
  await idle()
  await press('Alt+KeyA')
  await reach('Approve')
  await press('Enter')
  await tool('Alice').getByText('Approved.').waitFor()

  await press('Alt+KeyI')
  const item = page.locator('.popover.inbox').getByRole('listitem', { name: 'Bob' })
  await item.waitFor()
  await untilChanged(item)
  await reach('Approve')
  await press('Enter')
  await tool('Bob').getByText('Approved.').waitFor()
  await press('Escape')
  await idle()
  expect(await books.balance()).toBe(930)

  await reach(/^Chat\s*Write/, 'Shift+Tab')
  await press('ArrowRight')
  await page.getByRole('button', { name: 'Hold to talk' }).waitFor()
  await press('Alt+KeyL')
  await page.getByRole('tab', { name: 'Timeline' }).waitFor()
  await reach('Hide inspector')
  for (let steps = 0; steps < 5; steps += 1) await press('Tab')
  await press('Alt+KeyL')
  await page.getByRole('tab', { name: 'Timeline' }).waitFor({ state: 'detached' })
  const chats = page.getByRole('navigation', { name: 'Chats' })
  await press('Alt+KeyC')
  await chats.waitFor({ state: 'detached' })
  await press('Alt+KeyC')
  await chats.waitFor()

  await press('Alt+KeyM')
  await reach('Settings', 'Shift+Tab')
  await page.keyboard.type('?')
  const keys = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
  await keys.getByText('Alt+N').waitFor()
  await press('Escape')
  await keys.waitFor({ state: 'hidden' })
  await reach('Settings', 'Shift+Tab')
  await press('Enter')
  await reach('English')
  await press('ArrowRight')
  await page.getByRole('heading', { name: '設定' }).waitFor()
  await press('ArrowLeft')
  await press('Escape')
  await press('Alt+KeyM')
  expect(await isFocused(input)).toBe(true)
  expect(await log.getByRole('article').count()).toBe(4)
})

async function showInspector(page: Page): Promise<void> {
  const { input } = readPage(page)
  // The page listens to keys from when it has put the focus where one writes.
  await expect.poll(() => isFocused(input)).toBe(true)
  await page.keyboard.press('Alt+KeyL')
}
