import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

import { modesOf } from './support/modes.ts'
import { readPage } from './support/chat-page.ts'
import { findForeignWords } from './support/foreign-words.ts'
import { snap } from './support/snap.ts'
import { openTestDemo, type TestDemo } from './support/test-demo.ts'

let testDemo: TestDemo
beforeAll(async () => {
  testDemo = await openTestDemo()
})
afterAll(() => testDemo[Symbol.asyncDispose]())
afterEach(() => testDemo.leave())

// Names of products, languages, tools, models and what passes on the wire.
const KNOWN = [
  /^ADK Stream Protocol$/,
  /^ADK · (?:SSE|Live)$/,
  /^English$/,
  /^(?:get_weather|process_payment)$/,
  /^Tokyo$/,
  /^USD$/,
  /^gemini-[\w.-]+$/,
  /^\+?[\d.]+ m?s$/,
]

describe.each(modesOf('sse'))('%s', (mode) => {
  test('[DM31] [DM83] the page and the server use the chosen language, from the next message on', async () => {
    const page = await testDemo.visit({ mode })
    const { say, tool } = readPage(page)
    await say('Send $50 to Alice')
    await tool('Alice').getByText('Payments cannot be undone.').waitFor()
    await page.getByRole('button', { name: 'New chat' }).click()
    await page.getByRole('button', { name: 'Settings' }).click()
    await page.getByRole('radio', { name: '日本語' }).click({ force: true })
    await page.getByRole('button', { name: '設定' }).waitFor()
    expect(await page.getAttribute('html', 'lang')).toBe('ja')
    await page.keyboard.press('Escape')
    await say('Send $50 to Bob')
    await tool('Bob').getByText('送金は取り消せません。').waitFor()
    expect(await tool('Bob').textContent()).not.toContain('wallet')
    await snap(page, `ja-chosen-${mode}`)
    await page.reload()
    await page.getByRole('button', { name: '設定' }).waitFor()
  })
})

describe.each(modesOf('live'))('%s', (mode) => {
  test('[DM31] [DM82] with a Japanese browser, every part of the page is in Japanese', async () => {
    const viewport = { width: 1440, height: 900 }
    const page = await testDemo.visit({ mode, locale: 'ja-JP', viewport })
    const { say, tool, log, alert, idle, input } = readPage(page)
    const check = async (place: string) => {
      expect.soft(await findForeignWords(page, KNOWN), place).toEqual([])
    }
    await page.getByText('何をお手伝いしましょうか？').waitFor()
    expect(await page.getAttribute('html', 'lang')).toBe('ja')
    await check('welcome')

    await say('東京の天気は?')
    await tool('get_weather').getByText('完了').waitFor()
    await log.locator('.markdown').last().waitFor()
    await idle()
    await say(
      '[[think 空を見ます。]][[say 空は青いです。]][[image red]][[ground https://example.com/ 空の本]]',
    )
    await log.getByRole('link', { name: '空の本' }).waitFor()
    await idle()
    for (const summary of await log.locator('summary').all()) await summary.click()
    await check('chat')
    await snap(page, `ja-chat-${mode}`)

    await say('花子さんに120ドル送金してください')
    const card = tool('花子')
    await card.getByRole('button', { name: '120.00ドルを承認', exact: true }).waitFor()
    await check('asked')
    await card.getByRole('button', { name: '編集…' }).click()
    await check('edit')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: '承認待ち：1件' }).click()
    await page.getByRole('listitem').getByRole('button', { name: '承認' }).waitFor()
    await check('inbox')
    await snap(page, `ja-inbox-${mode}`)
    await page.keyboard.press('Escape')
    await card.getByRole('button', { name: '拒否…' }).click()
    await check('deny')
    await card.getByRole('button', { name: '拒否する' }).click()
    await card.getByText('拒否しました。実行されていません。').waitFor()
    await idle()
    await check('denied')

    await page.getByRole('button', { name: '設定' }).click()
    await check('settings')
    await snap(page, `ja-settings-${mode}`)
    await page.keyboard.press('Escape')
    await page.keyboard.press('Alt+/')
    await page.getByRole('dialog').waitFor()
    await check('keys')
    await page.keyboard.press('Escape')

    await page.getByRole('button', { name: 'インスペクターを表示' }).click()
    const inspector = page.getByRole('complementary', { name: 'インスペクター' })
    await inspector.getByRole('tab').first().waitFor()
    for (const tab of await inspector.getByRole('tab').all()) {
      await tab.click()
      await check(`inspector-${await tab.getAttribute('data-tab')}`)
    }
    await snap(page, `ja-inspector-${mode}`)

    await page.getByRole('button', { name: '新しいチャット' }).click()
    await input.waitFor()
    await say('混雑しているふりをして')
    await alert.getByText('モデルが混み合っています').waitFor()
    await check('busy')
    await snap(page, `ja-busy-${mode}`)
  })
})
