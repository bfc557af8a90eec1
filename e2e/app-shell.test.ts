import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { chatPage } from './support/chat-page.ts'
import { PICTURE } from './support/picture.ts'
import { sendAndWait, isFocused, appShell } from './support/app-shell.ts'
import { OVERLAYS, findViolations } from './support/axe-violations.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }

longTest(
  '[DM60] chats are listed with their state, newest first, also after a reload',
  async () => {
    const page = await testDemo.openPage()
    const { titles, chat, newChat } = appShell(page)
    await page.getByText('Your chats appear here.').waitFor()
    await sendAndWait(page, 'Send $50 to Alice')
    await chat('Send $50 to Alice').getByText('1 pending approval').waitFor()

    await newChat.click()
    await chatPage(page).send('[[say Slowly]][[wait list]]')
    await chat('Slowly').getByText('Reply in progress').waitFor()
    expect(await titles()).toEqual(['[[say Slowly]][[wait list]]', 'Send $50 to Alice'])
    testDemo.emulator.release('list')
    await chat('Slowly').getByText('Reply in progress').waitFor({ state: 'detached' })

    await page.reload()
    await chat('Slowly').waitFor()
    expect(await titles()).toEqual(['[[say Slowly]][[wait list]]', 'Send $50 to Alice'])
    expect(await chat('Slowly').getAttribute('aria-current')).toBe('page')
    await chat('Send $50').click()
    await chatPage(page).tool('Alice').waitFor()
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Send $50 to Alice')
    expect(await page.title()).toContain('Send $50 to Alice')
  },
)

longTest(
  '[DM60] [DM61] a chat is renamed with the keyboard, also in another tab; if the server refuses, the old name returns with an error',
  async () => {
    const otherTab = await testDemo.openPage()
    await sendAndWait(otherTab, '[[say Hello.]]')
    const page = await otherTab.context().newPage()
    await page.goto(otherTab.url())
    const { chat, options, titles } = appShell(page)
    await options('Hello.').focus()
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    const name = page.getByLabel('New name')
    await name.fill('Discarded')
    await page.keyboard.press('Escape')
    await chat('Hello.').waitFor()
    expect(await isFocused(chat('Hello.'))).toBe(true)

    await rename(page, 'Hello.', 'ごあいさつ')
    await chat('ごあいさつ').waitFor()
    await appShell(otherTab).chat('ごあいさつ').waitFor()
    expect(await appShell(otherTab).titles()).toEqual(['ごあいさつ'])
    await page.reload()
    await chat('ごあいさつ').waitFor()

    await page.route('**/chats/*', (route) =>
      route.request().method() === 'PATCH' ? route.fulfill({ status: 503 }) : route.fallback(),
    )
    await rename(page, 'ごあいさつ', 'Greetings')
    await page.getByText('The chat could not be renamed.').waitFor()
    await chat('ごあいさつ').waitFor()
    expect(await titles()).toEqual(['ごあいさつ'])
    await page.getByRole('alert').getByRole('button', { name: 'Close' }).click()
    expect(await page.getByRole('alert').count()).toBe(0)
  },
)

longTest(
  '[DM61] a chat is deleted after a confirmation, and the page starts another one',
  async () => {
    const page = await testDemo.openPage()
    await sendAndWait(page, '[[say Hello.]]')
    const { chat, options } = appShell(page)
    const openDialog = async () => {
      await options('Hello.').click()
      await page.getByRole('button', { name: 'Delete' }).click()
      return page.getByRole('dialog', { name: 'Delete this chat?' })
    }
    await (await openDialog()).getByRole('button', { name: 'Cancel' }).click()
    await chat('Hello.').waitFor()

    const url = page.url()
    await (await openDialog()).getByRole('button', { name: 'Delete' }).click()
    await page.getByText('What would you like to do?').waitFor()
    await page.getByText('Your chats appear here.').waitFor()
    await page.goto(url)
    await page.getByText('Chat not found').waitFor()
    expect(await appShell(page).titles()).toEqual([])
  },
)

longTest('[DM62] the chat list and the inspector can be hidden, and stay hidden', async () => {
  const page = await testDemo.openPage({ viewport: { width: 1440, height: 900 } })
  const list = page.getByRole('navigation', { name: 'Chats' })
  const inspector = page.getByRole('complementary', { name: 'Inspector' })
  await list.waitFor()
  expect(await inspector.count()).toBe(0)
  await page.getByRole('button', { name: 'Hide chats' }).click()
  await page.getByRole('button', { name: 'Show inspector' }).click()
  await inspector.getByText('Messages as JSON').waitFor()
  await page.reload()
  await inspector.waitFor()
  expect(await list.count()).toBe(0)
  await page.getByRole('button', { name: 'Show chats' }).click()
  await list.waitFor()
})

test('[DM62] on a phone the chat list is a drawer, which closes with Escape and after a choice', async () => {
  const page = await testDemo.openPage(PHONE)
  await sendAndWait(page, '[[say Hello.]]')
  const list = page.getByRole('dialog', { name: 'Chats' })
  const show = page.getByRole('button', { name: 'Show chats' })
  await show.click()
  await list.waitFor()
  await page.keyboard.press('Escape')
  await list.waitFor({ state: 'hidden' })
  expect(await isFocused(show)).toBe(true)

  await page.getByRole('button', { name: 'New chat' }).click()
  await page.getByText('What would you like to do?').waitFor()
  await show.click()
  await list.getByRole('link', { name: 'Hello.' }).click()
  await list.waitFor({ state: 'hidden' })
  await chatPage(page).log.getByText('Hello.', { exact: true }).waitFor()

  await show.click()
  await page.touchscreen.tap(350, 400)
  await list.waitFor({ state: 'hidden' })
})

longTest('[DM63] the mode is chosen with the keyboard and kept, with the open chat', async () => {
  const page = await testDemo.openPage()
  await sendAndWait(page, '[[say Hello.]]')
  const url = page.url()
  const modes = page.getByRole('radiogroup', { name: 'Mode', exact: true })
  const log = chatPage(page).log.getByText('Hello.', { exact: true })
  await modes.getByRole('radio', { name: 'Chat' }).focus()
  await page.keyboard.press('ArrowRight')
  expect(await modes.getByRole('radio', { name: 'Talk' }).isChecked()).toBe(true)
  await log.waitFor()
  await page.reload()
  await log.waitFor()
  expect(await modes.getByRole('radio', { name: 'Talk' }).isChecked()).toBe(true)

  await page.getByRole('button', { name: 'Settings' }).click()
  await page
    .getByRole('radiogroup', { name: 'Connection' })
    .getByRole('radio', { name: 'Gemini direct' })
    .check({ force: true })
  await page.keyboard.press('Escape')
  await page.getByText('Gemini without the agent').last().waitFor()
  expect(await log.count()).toBe(0)
  // Chats in the list belong to the agent, so the mode changes back.
  await appShell(page).chat('Hello.').click()
  await log.waitFor()
  expect(await modes.getByRole('radio', { name: 'Chat' }).isChecked()).toBe(true)
  expect(page.url()).toBe(url)
})

// In `npm test`, apps/demo/test/shell.test.ts has all shortcuts, and usability.test.ts uses one in a browser.
longTest('[DM67] keyboard shortcuts reach each part of the page, also while writing', async () => {
  const page = await testDemo.openPage({ viewport: { width: 1440, height: 900 } })
  const { send, tool, input, waitUntilIdle } = chatPage(page)
  await send('Send $30 to Alice and $40 to Bob')
  await tool('Bob').getByRole('button', { name: 'Approve' }).waitFor()
  await waitUntilIdle()
  for (const name of ['Alice', 'Bob', 'Alice']) {
    await page.keyboard.press('Alt+a')
    expect(await isFocused(tool(name).getByRole('button', { name: 'Approve' }))).toBe(true)
  }
  await page.keyboard.press('Alt+m')
  expect(await isFocused(input)).toBe(true)
  await page.keyboard.press('Alt+i')
  await page.getByRole('heading', { name: 'Pending approvals' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('heading', { name: 'Pending approvals' }).waitFor({ state: 'hidden' })
  await page.keyboard.press('Alt+l')
  await page.getByRole('complementary', { name: 'Inspector' }).waitFor()
  await page.keyboard.press('Alt+c')
  await page.getByRole('navigation', { name: 'Chats' }).waitFor({ state: 'detached' })
  await page.keyboard.press('Alt+n')
  await page.getByText('What would you like to do?').waitFor()
  // This chat has no pending approval, so the shortcut opens the inbox.
  await page.keyboard.press('Alt+a')
  await page.getByRole('heading', { name: 'Pending approvals' }).waitFor()
  await page.keyboard.press('Escape')

  await page.keyboard.type('?')
  expect(await input.inputValue()).toBe('?')
  await page.getByRole('button', { name: 'Settings' }).focus()
  await page.keyboard.type('?')
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).getByText('Alt+N').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'hidden' })
})

test('[DM68] the theme is that of the system, or the chosen one', async () => {
  const page = await testDemo.openPage({ colorScheme: 'dark' })
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
  const dark = await background()
  await page.getByRole('button', { name: 'Settings' }).click()
  await page.getByRole('radio', { name: 'Light' }).check({ force: true })
  const light = await background()
  expect(light).not.toBe(dark)
  await page.reload()
  expect(await background()).toBe(light)
  await page.getByRole('button', { name: 'Settings' }).click()
  await page.getByRole('radio', { name: 'System' }).check({ force: true })
  expect(await background()).toBe(dark)
})

test('[DM881] a printed page has the whole conversation, dark on light, without controls', async () => {
  const page = await testDemo.openPage({
    colorScheme: 'dark',
    viewport: { width: 900, height: 300 },
  })
  const { log, send, waitUntilIdle, input } = chatPage(page)
  await send(
    `[[say ${Array.from({ length: 12 }, (_none, index) => `Line ${index}.`).join('\n\n')}]]`,
  )
  await log.getByText('Line 11.').last().waitFor()
  await waitUntilIdle()
  await page.emulateMedia({ media: 'print' })
  const printed = await page.locator('.scroller').evaluate((scroller) => ({
    isWhole: scroller.scrollHeight <= scroller.clientHeight,
    isDarkOnLight: getComputedStyle(scroller).color === 'rgb(35, 33, 29)',
  }))
  expect(printed).toEqual({ isWhole: true, isDarkOnLight: true })
  expect(await input.isVisible()).toBe(false)
  expect(await log.getByText('Line 0.').last().isVisible()).toBe(true)
})

test('[DM883] the focus is not lost when a panel is hidden or shown, and when a chat is deleted', async () => {
  const page = await testDemo.openPage({ viewport: { width: 1500, height: 700 } })
  await sendAndWait(page, '[[say A chat.]]')
  const focusAfter = async (pressed: string, focused: string) => {
    await page.getByRole('button', { name: pressed, exact: true }).last().focus()
    await page.keyboard.press('Enter')
    const button = page.getByRole('button', { name: focused, exact: true }).last()
    await expect.poll(() => isFocused(button)).toBe(true)
  }
  await focusAfter('Hide chats', 'Show chats')
  await focusAfter('Show chats', 'Hide chats')
  await page.getByRole('button', { name: 'Show inspector' }).click()
  await page.getByRole('complementary').getByRole('button', { name: 'Hide inspector' }).focus()
  await page.keyboard.press('Enter')
  const showInspector = page.getByRole('button', { name: 'Show inspector' })
  await expect.poll(() => isFocused(showInspector)).toBe(true)
  await page.getByRole('button', { name: 'New chat' }).click()
  await page.getByRole('button', { name: 'Options for' }).click()
  await page.locator(':popover-open').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').waitFor()
  await focusAfter('Delete', 'New chat')
})

longTest('[DM882] the focus is not lost when the mode changes by keyboard', async () => {
  const page = await testDemo.openPage({ viewport: { width: 400, height: 700 } })
  const { input } = chatPage(page)
  await page.locator('.adk-composer').getByRole('button', { name: 'Talk', exact: true }).focus()
  await page.keyboard.press('Enter')
  const start = page.getByRole('button', { name: 'Talk hands-free' })
  await start.waitFor()
  await expect.poll(() => isFocused(start)).toBe(true)
  await page.getByRole('button', { name: 'Back to chat without voice' }).focus()
  await page.keyboard.press('Enter')
  await start.waitFor({ state: 'detached' })
  await expect.poll(() => isFocused(input)).toBe(true)
})

test('[DM70] the page shows that it is offline, until it is online again', async () => {
  const page = await testDemo.openPage()
  const offline = page.getByText('You are offline')
  await page.getByRole('button', { name: 'Settings' }).waitFor()
  expect(await offline.count()).toBe(0)
  await page.context().setOffline(true)
  await offline.waitFor()
  expect(await page.locator('.adk-connection').count()).toBe(0)
  await page.context().setOffline(false)
  await offline.waitFor({ state: 'detached' })
})

longTest('[DM69] music is chosen and stopped in the settings', async () => {
  const page = await testDemo.openPage()
  await page.getByRole('button', { name: 'Settings' }).click()
  await page.getByRole('radio', { name: 'Track 2' }).click({ force: true })
  const mute = page.getByRole('button', { name: 'Mute track 2' })
  await mute.waitFor()
  const off = page.getByRole('radiogroup', { name: 'Music' }).getByRole('radio', { name: 'Off' })
  await off.click({ force: true })
  await mute.waitFor({ state: 'detached' })
  expect(await off.isChecked()).toBe(true)
})

/** The chat list and the inspector. On a phone they are drawers. */
const PANELS = '.panel, dialog[open]'

const SCREENS = [
  ['dark', { viewport: { width: 1024, height: 768 }, locale: 'ja-JP' }],
  ['light', PHONE],
  ['light', { viewport: { width: 1440, height: 900 } }],
] as const

longTest.each(SCREENS)(
  '[DM26] [DM27] axe finds no violation in settings, dialogs, panels and the composer: %s',
  async (colorScheme, options) => {
    // Panels that slide in are transparent at first, which axe would report.
    const page = await testDemo.openPage({ colorScheme, reducedMotion: 'reduce', ...options })
    const { waitUntilIdle, send, log } = chatPage(page)
    const { chooser, previews } = appShell(page)
    await sendAndWait(page, '[[say Hello.]]')
    const check = async (within?: string) => {
      expect(await findViolations(page, within)).toEqual([])
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
      expect(overflow).toBeLessThanOrEqual(0)
    }
    // Checks the whole page once, then only the new parts.
    await check()
    await page.getByRole('button', { name: /^(Settings|設定)$/ }).click()
    await check(OVERLAYS)
    await page.keyboard.press('Escape')
    await page.keyboard.press('Alt+/')
    await check(OVERLAYS)
    await page.keyboard.press('Escape')
    await page.keyboard.press('Alt+l')
    await check(PANELS)
    await page.keyboard.press('Escape')
    const list = page.locator('.chat-link')
    if (!(await list.isVisible())) await page.keyboard.press('Alt+c')
    await list.waitFor()
    await check(PANELS)
    await page.locator('.chat-options').click()
    await check(OVERLAYS)
    await page.locator('.menu-item.danger').click()
    await check(OVERLAYS)
    await page.keyboard.press('Escape')
    await page.locator('.chat-options').click()
    await page.locator('.menu-item').first().click()
    await check(PANELS)
    await page.keyboard.press('Escape')
    if (options === PHONE) await page.keyboard.press('Escape')
    await chooser.setInputFiles([PICTURE, { ...PICTURE, name: 'x.txt', mimeType: 'text/plain' }])
    await previews.getByRole('img').waitFor()
    await check('.composer')
    await send('[[say Hello again.]]')
    await log.getByText('Hello again.', { exact: true }).waitFor()
    await waitUntilIdle()
    await log.locator('[data-role=user]').first().getByRole('button').nth(1).click()
    await check('[role=log]')
  },
)

async function rename(page: Page, from: string, to: string): Promise<void> {
  await appShell(page).options(from).click()
  await page.getByRole('button', { name: 'Rename' }).click()
  await page.getByLabel('New name').fill(to)
  await page.keyboard.press('Enter')
}
