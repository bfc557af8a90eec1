import type { Locator, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'

import { en } from '../apps/demo/src/page/i18n/en.ts'
import { ja } from '../apps/demo/src/page/i18n/ja.ts'
import { longTest } from '../test/support/long-test.ts'
import { testModes } from './support/modes.ts'
import { chatPage } from './support/chat-page.ts'
import { PICTURE } from './support/picture.ts'
import { sendAndWait, isFocused, appShell } from './support/app-shell.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const PNG = PICTURE.buffer.toString('base64')

const testDemo = useTestDemo({ live: { recordAudio: true } })

describe.each(testModes('sse'))('%s', (mode) => {
  longTest('[DM64] pictures are chosen, shown, removed and sent', async () => {
    const page = await testDemo.openPage({ mode })
    const { send, log, waitUntilIdle, input } = chatPage(page)
    const { chooser, previews } = appShell(page)
    await chooser.setInputFiles([PICTURE, { ...PICTURE, name: 'other.png' }])
    await previews.getByRole('img', { name: 'other.png' }).waitFor()
    await page.getByRole('button', { name: 'Remove other.png' }).click()
    expect(await previews.getByRole('img').count()).toBe(1)

    const before = testDemo.countSentToModel(PNG)
    await send('What is in this picture?')
    await log.locator('[data-role=user]').getByRole('img').waitFor()
    await log.locator('[data-role=assistant]').getByText('image/png').waitFor()
    await waitUntilIdle()
    expect(await previews.count()).toBe(0)
    expect(await isFocused(input)).toBe(true)
    await takeScreenshot(page, `picture-${mode}`)
    // The model received the picture once.
    expect(testDemo.countSentToModel(PNG)).toBe(before + 1)
  })
})

describe.each(testModes('live'))('%s', (mode) => {
  test('[DM160] Stop keeps the draft and sends nothing, with the mouse and the keyboard', async () => {
    const page = await testDemo.openPage({ mode })
    const { send, input, stop, waitUntilIdle, log } = chatPage(page)
    for (const press of ['click', 'key'] as const) {
      await send('[[say one two]][[wait never]]')
      await stop.waitFor()
      await input.fill('half a sentence')
      if (press === 'click') await stop.click()
      else await stop.press('Enter')
      await waitUntilIdle()
      expect(await input.inputValue()).toBe('half a sentence')
      await input.fill('')
    }
    expect(await log.locator('[data-role=user]').count()).toBe(2)
    expect(await log.getByText('half a sentence').count()).toBe(0)
  })
})

describe.each(testModes('sse'))('%s', (mode) => {
  longTest('[DM66] a message is edited in its place, and replaces what followed', async () => {
    const page = await testDemo.openPage({ mode })
    const { log, send, waitUntilIdle, replies } = chatPage(page)
    await sendAndWait(page, '[[say The first.]]')
    await send('[[say The second.]]')
    await log.getByText('The second.', { exact: true }).waitFor()
    await waitUntilIdle()

    const first = log.locator('[data-role=user]').first()
    await first.getByRole('button', { name: 'Edit and send again' }).focus()
    await page.keyboard.press('Enter')
    const editor = page.getByLabel('Edit the message')
    await editor.fill('No')
    await page.keyboard.press('Escape')
    await first.getByText('[[say The first.]]').waitFor()

    await first.getByRole('button', { name: 'Edit and send again' }).click()
    await editor.fill('[[say Something else.]]')
    await page.keyboard.press('Enter')
    await log.getByText('Something else.', { exact: true }).waitFor()
    await waitUntilIdle()
    expect(await replies.count()).toBe(1)
    await page.reload()
    await log.getByText('Something else.', { exact: true }).waitFor()
    expect(await replies.count()).toBe(1)
    expect(await log.textContent()).not.toContain('The first.')
  })
})

test('[DM880] an open editor keeps its text and takes no focus when a reply ends, and a held key does not send it', async () => {
  const page = await testDemo.openPage()
  const { log, send, waitUntilIdle, stop, input } = chatPage(page)
  await sendAndWait(page, '[[say The first.]]')
  const edit = log.getByRole('button', { name: 'Edit and send again' }).first()
  await edit.focus()
  await page.keyboard.down('Enter')
  const editor = page.getByLabel('Edit the message')
  await editor.waitFor()
  await page.keyboard.down('Enter')
  await page.keyboard.up('Enter')
  await editor.fill('[[say Not yet.]]')
  await send('[[say The second.]][[wait gate-edit]]')
  await stop.waitFor()
  await editor.press('Enter')
  await input.focus()
  testDemo.emulator.release('gate-edit')
  await waitUntilIdle()
  expect(await editor.inputValue()).toBe('[[say Not yet.]]')
  expect(await isFocused(input)).toBe(true)
  await editor.press('Escape')
  expect(await isFocused(edit)).toBe(true)
  await page.keyboard.press('Enter')
  await editor.fill('[[say Something else.]]')
  await editor.press('Enter')
  await log.getByText('Something else.', { exact: true }).waitFor()
  expect(await isFocused(input)).toBe(true)
})

describe.each(testModes('sse'))('%s', (mode) => {
  test('[DM64] a file that cannot be sent is explained; pictures can be pasted, dropped, and sent without text', async () => {
    const page = await testDemo.openPage({ mode })
    const { input, log } = chatPage(page)
    const { previews } = appShell(page)
    await insertFiles(page, 'drop', [
      { name: 'notes.txt', type: 'text/plain', base64: 'eA==' },
      { name: 'large.png', type: 'image/png', base64: '', padding: 5 * 1_048_576 + 1 },
      { name: 'dropped.png', type: 'image/png', base64: PNG },
    ])
    await previews.getByRole('img', { name: 'dropped.png' }).waitFor()
    const alert = await page.getByRole('alert').textContent()
    expect(alert).toContain('notes.txt is not a PNG')
    expect(alert).toContain('large.png is larger than 5 MB')
    expect(await previews.getByRole('img').count()).toBe(1)

    await insertFiles(page, 'paste', [{ name: 'pasted.png', type: 'image/png', base64: PNG }])
    await previews.getByRole('img').nth(1).waitFor()
    await input.press('Enter')
    await log.locator('[data-role=user]').getByRole('img').nth(1).waitFor()
    await log.locator('[data-role=assistant]').getByText('image/png').first().waitFor()
    expect(await log.locator('.adk-said').count()).toBe(0)
  })

  longTest('[DM66] a reply is copied as Markdown', async () => {
    const page = await testDemo.openPage({
      mode,
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const { reply } = chatPage(page)
    await sendAndWait(page, '[[say # Title\n\n- **one**\n- two]]')
    await reply().getByRole('button', { name: 'Copy' }).click()
    await reply().getByText('Copied').waitFor({ state: 'attached' })
    const copied = await page.evaluate(() => navigator.clipboard.readText())
    expect(copied).toBe('# Title\n\n- **one**\n- two')
  })
})

/** The element that shows the outcome of each suggestion, in the order of the suggestions. */
const OUTCOMES: readonly ((page: Page) => Locator)[] = [
  (page) => chatPage(page).tool('process_payment').getByRole('timer'),
  (page) =>
    chatPage(page)
      .tool('process_payment')
      .getByText(/2 people|2人/),
  (page) => chatPage(page).tool('process_payment').getByRole('timer').nth(1),
  (page) => chatPage(page).log.getByText(/Accountant › Payment|経理担当 › 送金/),
  (page) => chatPage(page).log.locator('.adk-steps li[data-state=waiting]'),
  (page) => chatPage(page).log.getByText(/Notebook › Delete notes|メモ帳 › メモの削除/),
  (page) => chatPage(page).log.locator('.adk-question').getByRole('timer'),
  (page) => chatPage(page).log.locator('.adk-sign-in').getByRole('timer'),
  (page) =>
    chatPage(page)
      .tool('get_weather')
      .getByText(/Done|完了/),
  (page) => chatPage(page).tool('get_location').getByRole('timer'),
  (page) => chatPage(page).log.locator('.adk-question').getByRole('timer'),
  (page) =>
    chatPage(page)
      .tool('change_bgm')
      .getByText(/Done|完了/),
  (page) => chatPage(page).tool('process_payment').getByRole('timer'),
  (page) => chatPage(page).reply().getByRole('img'),
  (page) => chatPage(page).reply().getByText('image/png'),
  (page) => chatPage(page).reply().locator('.adk-reasoning'),
  (page) => chatPage(page).reply().locator('.adk-sources'),
  (page) => chatPage(page).reply().locator('.markdown'),
  (page) => chatPage(page).alert,
]

const TEXTS = [
  ['en-US', en],
  ['ja-JP', ja],
] as const

// In `npm test`, tests of the model cover all suggestions without a browser.
longTest.each(TEXTS)('[DM65] every suggestion does what it says, in %s', async (locale, texts) => {
  const page = await testDemo.openPage({ locale, permissions: [] })
  const { starts, suggestions } = texts.page
  const all = [
    ...starts
      .filter(({ text }) => text !== undefined)
      .map(({ title }) => ({ name: title, needsPicture: false })),
    ...suggestions
      .flatMap((group) => group.suggestions)
      .map(({ text, needsPicture = false }) => ({ name: text, needsPicture })),
  ]
  expect(all).toHaveLength(OUTCOMES.length)
  for (const [index, { name, needsPicture }] of all.entries()) {
    // Starts a new chat without loading the page again.
    if (index > 0) await page.keyboard.press('Alt+KeyN')
    await page.locator('.welcome').waitFor()
    const suggestion = page.getByRole('button', { name })
    if (!(await suggestion.isVisible())) await page.locator('.more-suggestions > summary').click()
    if (needsPicture) await sendWithPicture(page, suggestion)
    else await suggestion.click()
    await OUTCOMES[index]?.(page).waitFor()
  }
})

/** Clicks a suggestion that fills the input and opens the file chooser, then sends the text with a picture. */
async function sendWithPicture(page: Page, suggestion: Locator): Promise<void> {
  const choosing = page.waitForEvent('filechooser')
  await suggestion.click()
  await (await choosing).setFiles(PICTURE)
  await appShell(page).previews.getByRole('img').waitFor()
  await chatPage(page).input.press('Enter')
}

interface TestFile {
  readonly name: string
  readonly type: string
  readonly base64: string
  /** The number of zero bytes at the end. Default 0. */
  readonly padding?: number
}

/** Pastes or drops files. Playwright cannot put files on the clipboard or drag them, so this dispatches the event. */
async function insertFiles(
  page: Page,
  how: 'paste' | 'drop',
  files: readonly TestFile[],
): Promise<void> {
  const { input } = chatPage(page)
  await input.evaluate(
    (element, inserted) => {
      const data = new DataTransfer()
      for (const { name, type, base64, padding = 0 } of inserted.files) {
        const bytes = Uint8Array.from(atob(base64), (character) => character.codePointAt(0) ?? 0)
        data.items.add(new File([bytes, new Uint8Array(padding)], name, { type }))
      }
      const init = { bubbles: true, cancelable: true }
      const event =
        inserted.how === 'paste'
          ? new ClipboardEvent('paste', { clipboardData: data, ...init })
          : new DragEvent('drop', { dataTransfer: data, ...init })
      element.dispatchEvent(event)
    },
    { how, files },
  )
}
