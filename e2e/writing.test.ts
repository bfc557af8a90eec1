import type { Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

import { en } from '../apps/demo/src/page/i18n/en.ts'
import { ja } from '../apps/demo/src/page/i18n/ja.ts'
import { modesOf } from './support/modes.ts'
import { readPage } from './support/chat-page.ts'
import { PICTURE } from './support/picture.ts'
import { converse, isFocused, readShell } from './support/shell-page.ts'
import { snap } from './support/snap.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'

let testDemo: TestDemo
beforeAll(async () => {
  testDemo = await openTestDemo({}, { live: { recordAudio: true } })
})
afterAll(() => testDemo[Symbol.asyncDispose]())
afterEach(() => testDemo.leave())

describe.each(modesOf('sse'))('%s', (mode) => {
  test('[DM64] pictures are chosen, seen, removed and sent', async () => {
    const page = await testDemo.visit({ mode })
    const { say, log, idle, input } = readPage(page)
    const { chooser, previews } = readShell(page)
    await chooser.setInputFiles([PICTURE, { ...PICTURE, name: 'other.png' }])
    await previews.getByRole('img', { name: 'other.png' }).waitFor()
    await page.getByRole('button', { name: 'Remove other.png' }).click()
    expect(await previews.getByRole('img').count()).toBe(1)

    const pictures = testDemo.told(PICTURE.buffer.toString('base64'))
    await say('What is in this picture?')
    await log.locator('[data-role=user]').getByRole('img').waitFor()
    await log.locator('[data-role=assistant]').getByText('image/png').waitFor()
    await idle()
    expect(await previews.count()).toBe(0)
    expect(await isFocused(input)).toBe(true)
    await snap(page, `picture-${mode}`)
    // The model was given the picture itself, once.
    expect(testDemo.told(PICTURE.buffer.toString('base64'))).toBe(pictures + 1)
  })
})

describe.each(modesOf('live'))('%s', (mode) => {
  test('[DM160] Stop keeps the draft and sends nothing, by mouse and by key', async () => {
    const page = await testDemo.visit({ mode })
    const { say, input, stop, idle, log } = readPage(page)
    for (const press of ['click', 'key'] as const) {
      await say('[[say one two]][[wait never]]')
      await stop.waitFor()
      await input.fill('half a sentence')
      if (press === 'click') await stop.click()
      else await stop.press('Enter')
      await idle()
      expect(await input.inputValue()).toBe('half a sentence')
      await input.fill('')
    }
    expect(await log.locator('[data-role=user]').count()).toBe(2)
    expect(await log.getByText('half a sentence').count()).toBe(0)
  })
})

describe.each(modesOf('sse'))('%s', (mode) => {
  test('[DM66] a message is changed in its place, and takes the place of what followed', async () => {
    const page = await testDemo.visit({ mode })
    const { log, say, idle, answers } = readPage(page)
    await converse(page, '[[say The first.]]')
    await say('[[say The second.]]')
    await log.getByText('The second.', { exact: true }).waitFor()
    await idle()

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
    await idle()
    expect(await answers.count()).toBe(1)
    await page.reload()
    await log.getByText('Something else.', { exact: true }).waitFor()
    expect(await answers.count()).toBe(1)
    expect(await log.textContent()).not.toContain('The first.')
  })
})

describe.each(modesOf('sse'))('%s', (mode) => {
  test('[DM64] a picture is pasted and dropped, and goes without a word', async () => {
    const page = await testDemo.visit({ mode })
    const { input, log } = readPage(page)
    const { previews } = readShell(page)
    await give(page, 'paste')
    await give(page, 'drop')
    await previews.getByRole('img').nth(1).waitFor()
    await input.press('Enter')
    await log.locator('[data-role=user]').getByRole('img').nth(1).waitFor()
    await log.locator('[data-role=assistant]').getByText('image/png').first().waitFor()
    expect(await log.locator('.adk-said').count()).toBe(0)
  })

  test('[DM66] an answer is copied as it was written', async () => {
    const page = await testDemo.visit({ mode, permissions: ['clipboard-read', 'clipboard-write'] })
    const { answer } = readPage(page)
    await converse(page, '[[say # Title\n\n- **one**\n- two]]')
    await answer().getByRole('button', { name: 'Copy' }).click()
    await answer().getByText('Copied').waitFor({ state: 'attached' })
    const copied = await page.evaluate(() => navigator.clipboard.readText())
    expect(copied).toBe('# Title\n\n- **one**\n- two')
  })
})

test('[DM64] what cannot be sent is refused in words', async () => {
  const page = await testDemo.visit()
  const { chooser, previews } = readShell(page)
  const large = Buffer.alloc(5 * 1_048_576 + 1)
  await chooser.setInputFiles([
    { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('x') },
    { name: 'large.png', mimeType: 'image/png', buffer: large },
    PICTURE,
  ])
  await previews.getByRole('img', { name: 'dot.png' }).waitFor()
  const said = await page.getByRole('alert').textContent()
  expect(said).toContain('notes.txt is not a PNG')
  expect(said).toContain('large.png is larger than 5 MB')
  expect(await previews.getByRole('img').count()).toBe(1)
})

/** What comes of the suggestions, in their order. */
const OUTCOMES: readonly ((page: Page) => Locator)[] = [
  (page) => readPage(page).tool('process_payment').getByRole('timer'),
  (page) =>
    readPage(page)
      .tool('process_payment')
      .getByText(/2 people|2人/),
  (page) => readPage(page).tool('process_payment').getByRole('timer').nth(1),
  (page) => readPage(page).log.getByText('accountant › process_payment'),
  (page) => readPage(page).log.locator('.adk-steps li[data-state=waiting]'),
  (page) => readPage(page).log.getByText('notebook › notes_delete'),
  (page) => readPage(page).log.locator('.adk-question').getByRole('timer'),
  (page) => readPage(page).log.locator('.adk-sign-in').getByRole('timer'),
  (page) =>
    readPage(page)
      .tool('get_weather')
      .getByText(/Done|完了/),
  (page) => readPage(page).tool('get_location').getByRole('timer'),
  (page) =>
    readPage(page)
      .tool('change_bgm')
      .getByText(/Done|完了/),
  (page) => readPage(page).tool('Alice').getByRole('timer'),
  (page) => readPage(page).answer().getByRole('img'),
  (page) => readPage(page).answer().getByText('image/png'),
  (page) => readPage(page).answer().locator('.adk-reasoning'),
  (page) => readPage(page).answer().locator('.adk-sources'),
  (page) => readPage(page).answer().locator('.markdown'),
  (page) => readPage(page).alert,
]

test.each([
  ['en-US', en],
  ['ja-JP', ja],
])('[DM65] every suggestion does what it says, in %s', async (locale, texts) => {
  const page = await testDemo.visit({ locale, permissions: [] })
  const { starts, suggestions } = texts.shell
  const offered = [
    ...[starts.payment, starts.twoPeople].map(({ title }) => ({
      name: title,
      needsPicture: false,
    })),
    ...suggestions
      .flatMap((group) => group.suggestions)
      .map(({ text, needsPicture = false }) => ({ name: text, needsPicture })),
  ]
  expect(offered).toHaveLength(OUTCOMES.length)
  for (const [index, { name, needsPicture }] of offered.entries()) {
    // The page is empty again without being loaded again.
    if (index > 0) await page.keyboard.press('Alt+KeyN')
    await page.locator('.welcome').waitFor()
    const suggestion = page.getByRole('button', { name })
    if (!(await suggestion.isVisible())) await page.locator('.more-suggestions > summary').click()
    if (needsPicture) await sendWithPicture(page, suggestion)
    else await suggestion.click()
    await OUTCOMES[index]?.(page).waitFor()
  }
})

/** The question is written, the reader chooses the picture and sends both. */
async function sendWithPicture(page: Page, suggestion: Locator): Promise<void> {
  const choosing = page.waitForEvent('filechooser')
  await suggestion.click()
  await (await choosing).setFiles(PICTURE)
  await readShell(page).previews.getByRole('img').waitFor()
  await readPage(page).input.press('Enter')
}

/** Gives the page a picture as the browser does; a test has no clipboard and no mouse that carries files. */
async function give(page: Page, how: 'paste' | 'drop'): Promise<void> {
  const input = readPage(page).input
  await input.evaluate(
    (element, { base64, type }) => {
      const bytes = Uint8Array.from(atob(base64), (character) => character.codePointAt(0) ?? 0)
      const carried = new DataTransfer()
      carried.items.add(new File([bytes], `${type}.png`, { type: 'image/png' }))
      const event =
        type === 'paste'
          ? new ClipboardEvent(type, { clipboardData: carried, bubbles: true, cancelable: true })
          : new DragEvent(type, { dataTransfer: carried, bubbles: true, cancelable: true })
      element.dispatchEvent(event)
    },
    { base64: PICTURE.buffer.toString('base64'), type: how },
  )
}
