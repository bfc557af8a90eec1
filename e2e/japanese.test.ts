import { describe, expect, test } from 'vitest'

import { testModes } from './support/modes.ts'
import { chatPage } from './support/chat-page.ts'
import { findUntranslatedTexts } from './support/untranslated-texts.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

// Names of products, languages, tools and models, and values of the protocol.
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

describe.each(testModes('sse'))('%s', (mode) => {
  test('[DM31] [DM83] the page and the server use the chosen language, from the next message on', async () => {
    const page = await testDemo.openPage({ mode })
    const { send, tool } = chatPage(page)
    await send('Send $50 to Alice')
    await tool('Alice').getByText('Payments cannot be undone.').waitFor()
    await page.getByRole('button', { name: 'New chat' }).click()
    await page.getByRole('button', { name: 'Settings' }).click()
    await page.getByRole('radio', { name: '日本語' }).click({ force: true })
    await page.getByRole('button', { name: '設定' }).waitFor()
    expect(await page.getAttribute('html', 'lang')).toBe('ja')
    await page.keyboard.press('Escape')
    await send('Send $50 to Bob')
    await tool('Bob').getByText('送金は取り消せません。').waitFor()
    expect(await tool('Bob').textContent()).not.toContain('wallet')
    await takeScreenshot(page, `ja-chosen-${mode}`)
    await page.reload()
    await page.getByRole('button', { name: '設定' }).waitFor()
  })
})

describe.each(testModes('live'))('%s', (mode) => {
  test('[DM31] [DM82] with a Japanese browser, every part of the page is in Japanese', async () => {
    const viewport = { width: 1440, height: 900 }
    const page = await testDemo.openPage({ mode, locale: 'ja-JP', viewport })
    const { send, tool, log, alert, waitUntilIdle, input } = chatPage(page)
    const check = async (screen: string) => {
      expect.soft(await findUntranslatedTexts(page, KNOWN), screen).toEqual([])
    }
    await page.getByText('何をお手伝いしましょうか？').waitFor()
    expect(await page.getAttribute('html', 'lang')).toBe('ja')
    await check('welcome')

    await send('東京の天気は?')
    await tool('get_weather').getByText('完了').waitFor()
    await log.locator('.markdown').last().waitFor()
    await waitUntilIdle()
    await send(
      '[[think 空を見ます。]][[say 空は青いです。]][[image red]][[ground https://example.com/ 空の本]]',
    )
    await log.getByRole('link', { name: '空の本' }).waitFor()
    await waitUntilIdle()
    for (const summary of await log.locator('summary').all()) await summary.click()
    await check('chat')
    await takeScreenshot(page, `ja-chat-${mode}`)

    await send('花子さんに120ドル送金してください')
    const card = tool('花子')
    await card.getByRole('button', { name: '120.00ドルを承認', exact: true }).waitFor()
    await check('pending')
    await card.getByRole('button', { name: '編集…' }).click()
    await check('edit')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: '承認待ち：1件' }).click()
    await page.getByRole('listitem').getByRole('button', { name: '承認' }).waitFor()
    await check('inbox')
    await takeScreenshot(page, `ja-inbox-${mode}`)
    await page.keyboard.press('Escape')
    await card.getByRole('button', { name: '拒否…' }).click()
    await check('deny')
    await card.getByRole('button', { name: '拒否する' }).click()
    await card.getByText('拒否しました。実行されていません。').waitFor()
    await waitUntilIdle()
    await check('denied')

    await page.getByRole('button', { name: '設定' }).click()
    await check('settings')
    await takeScreenshot(page, `ja-settings-${mode}`)
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
    await takeScreenshot(page, `ja-inspector-${mode}`)

    await page.getByRole('button', { name: '新しいチャット' }).click()
    await input.waitFor()
    await send('混雑しているふりをして')
    await alert.getByText('モデルが混み合っています').waitFor()
    await check('busy')
    await takeScreenshot(page, `ja-busy-${mode}`)
  })
})
