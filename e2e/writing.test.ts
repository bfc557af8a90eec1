import type { Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

import { en } from '../apps/demo/src/page/i18n/en.ts'
import { ja } from '../apps/demo/src/page/i18n/ja.ts'
import { isLong } from '../test/support/long-run.ts'
import { modesOf } from './support/modes.ts'
import { readPage } from './support/chat-page.ts'
import { PICTURE } from './support/picture.ts'
import { converse, isFocused, readShell } from './support/shell-page.ts'
import { snap } from './support/snap.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'

const PNG = PICTURE.buffer.toString('base64')

let testDemo: TestDemo
beforeAll(async () => {
  testDemo = await openTestDemo({}, { live: { recordAudio: true } })
})
afterAll(() => testDemo[Symbol.asyncDispose]())
afterEach(() => testDemo.leave())

describe.each(modesOf('sse'))('%s', (mode) => {
  test('[DM64] pictures are chosen, shown, removed and sent', async () => {
    const page = await testDemo.visit({ mode })
    const { say, log, idle, input } = readPage(page)
    const { chooser, previews } = readShell(page)
    await chooser.setInputFiles([PICTURE, { ...PICTURE, name: 'other.png' }])
    await previews.getByRole('img', { name: 'other.png' }).waitFor()
    await page.getByRole('button', { name: 'Remove other.png' }).click()
    expect(await previews.getByRole('img').count()).toBe(1)

    const pictures = testDemo.told(PNG)
    await say('What is in this picture?')
    await log.locator('[data-role=user]').getByRole('img').waitFor()
    await log.locator('[data-role=assistant]').getByText('image/png').waitFor()
    await idle()
    expect(await previews.count()).toBe(0)
    expect(await isFocused(input)).toBe(true)
    await snap(page, `picture-${mode}`)
    // The model was given the picture itself, once.
    expect(testDemo.told(PNG)).toBe(pictures + 1)
  })
})

describe.each(modesOf('live'))('%s', (mode) => {
  test('[DM160] Stop keeps the draft and sends nothing, with the mouse and the keyboard', async () => {
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
  test('[DM66] a message is edited in its place, and replaces what followed', async () => {
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
  test('[DM64] a file that cannot be sent is explained; pictures can be pasted, dropped, and sent without text', async () => {
    const page = await testDemo.visit({ mode })
    const { input, log } = readPage(page)
    const { previews } = readShell(page)
    await give(page, 'drop', [
      { name: 'notes.txt', type: 'text/plain', base64: 'eA==' },
      { name: 'large.png', type: 'image/png', base64: '', padding: 5 * 1_048_576 + 1 },
      { name: 'dropped.png', type: 'image/png', base64: PNG },
    ])
    await previews.getByRole('img', { name: 'dropped.png' }).waitFor()
    const said = await page.getByRole('alert').textContent()
    expect(said).toContain('notes.txt is not a PNG')
    expect(said).toContain('large.png is larger than 5 MB')
    expect(await previews.getByRole('img').count()).toBe(1)

    await give(page, 'paste', [{ name: 'pasted.png', type: 'image/png', base64: PNG }])
    await previews.getByRole('img').nth(1).waitFor()
    await input.press('Enter')
    await log.locator('[data-role=user]').getByRole('img').nth(1).waitFor()
    await log.locator('[data-role=assistant]').getByText('image/png').first().waitFor()
    expect(await log.locator('.adk-said').count()).toBe(0)
  })

  test('[DM66] a reply is copied as Markdown', async () => {
    const page = await testDemo.visit({ mode, permissions: ['clipboard-read', 'clipboard-write'] })
    const { answer } = readPage(page)
    await converse(page, '[[say # Title\n\n- **one**\n- two]]')
    await answer().getByRole('button', { name: 'Copy' }).click()
    await answer().getByText('Copied').waitFor({ state: 'attached' })
    const copied = await page.evaluate(() => navigator.clipboard.readText())
    expect(copied).toBe('# Title\n\n- **one**\n- two')
  })
})

/** What comes of the suggestions, in their order. */
const OUTCOMES: readonly ((page: Page) => Locator)[] = [
  (page) => readPage(page).tool('process_payment').getByRole('timer'),
  (page) =>
    readPage(page)
      .tool('process_payment')
      .getByText(/2 people|2人/),
  (page) => readPage(page).tool('process_payment').getByRole('timer').nth(1),
  (page) => readPage(page).log.getByText(/Accountant › Payment|経理担当 › 送金/),
  (page) => readPage(page).log.locator('.adk-steps li[data-state=waiting]'),
  (page) => readPage(page).log.getByText(/Notebook › Delete notes|メモ帳 › メモの削除/),
  (page) => readPage(page).log.locator('.adk-question').getByRole('timer'),
  (page) => readPage(page).log.locator('.adk-sign-in').getByRole('timer'),
  (page) =>
    readPage(page)
      .tool('get_weather')
      .getByText(/Done|完了/),
  (page) => readPage(page).tool('get_location').getByRole('timer'),
  (page) => readPage(page).log.locator('.adk-question').getByRole('timer'),
  (page) =>
    readPage(page)
      .tool('change_bgm')
      .getByText(/Done|完了/),
  (page) => readPage(page).tool('process_payment').getByRole('timer'),
  (page) => readPage(page).answer().getByRole('img'),
  (page) => readPage(page).answer().getByText('image/png'),
  (page) => readPage(page).answer().locator('.adk-reasoning'),
  (page) => readPage(page).answer().locator('.adk-sources'),
  (page) => readPage(page).answer().locator('.markdown'),
  (page) => readPage(page).alert,
]

/** Their languages, and which of them are tried in `npm test`: the model is asked for all of them without a page. */
const TEXTS = [
  ['en-US', en, [0, 13]],
  ['ja-JP', ja, [1, 14]],
] as const

test.each(TEXTS)(
  '[DM65] every suggestion does what it says, in %s',
  async (locale, texts, some) => {
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
    const tried = isLong ? [...offered.keys()] : some
    for (const [position, index] of tried.entries()) {
      const { name, needsPicture } = offered[index] ?? { name: '', needsPicture: false }
      // The page is empty again without being loaded again.
      if (position > 0) await page.keyboard.press('Alt+KeyN')
      await page.locator('.welcome').waitFor()
      const suggestion = page.getByRole('button', { name })
      if (!(await suggestion.isVisible())) await page.locator('.more-suggestions > summary').click()
      if (needsPicture) await sendWithPicture(page, suggestion)
      else await suggestion.click()
      await OUTCOMES[index]?.(page).waitFor()
    }
  },
)

/** The question is written, the reader chooses the picture and sends both. */
async function sendWithPicture(page: Page, suggestion: Locator): Promise<void> {
  const choosing = page.waitForEvent('filechooser')
  await suggestion.click()
  await (await choosing).setFiles(PICTURE)
  await readShell(page).previews.getByRole('img').waitFor()
  await readPage(page).input.press('Enter')
}

interface GivenFile {
  readonly name: string
  readonly type: string
  readonly base64: string
  /** A number of zeros behind it. Default 0. */
  readonly padding?: number
}

/** Gives the page files as the browser does; a test has no clipboard and no mouse that carries files. */
async function give(page: Page, how: 'paste' | 'drop', files: readonly GivenFile[]): Promise<void> {
  const { input } = readPage(page)
  await input.evaluate(
    (element, given) => {
      const carried = new DataTransfer()
      for (const { name, type, base64, padding = 0 } of given.files) {
        const bytes = Uint8Array.from(atob(base64), (character) => character.codePointAt(0) ?? 0)
        carried.items.add(new File([bytes, new Uint8Array(padding)], name, { type }))
      }
      const init = { bubbles: true, cancelable: true }
      const event =
        given.how === 'paste'
          ? new ClipboardEvent('paste', { clipboardData: carried, ...init })
          : new DragEvent('drop', { dataTransfer: carried, ...init })
      element.dispatchEvent(event)
    },
    { how, files },
  )
}
