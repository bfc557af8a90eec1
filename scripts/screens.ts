import { mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

import type { Page } from 'playwright-core'

import { buildPage } from '../apps/demo/scripts/build-page.ts'
import { readPage } from '../e2e/support/chat-page.ts'
import { openTestDemo } from '../e2e/support/test-demo.ts'

/**
 * Takes pictures of the screens of the demo in both languages and themes, on a desktop, on a phone and at a zoom of 400 %, for people
 * who review its design: `npm run screenshots:all`. Further arguments select pictures by name, such as `ja-dark`.
 */
const FOLDER = new URL('../e2e/screenshots/screens/', import.meta.url)

const SIZES = {
  desktop: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
  // 1280 × 900 at 400 %.
  zoom: { viewport: { width: 320, height: 225 }, deviceScaleFactor: 2 },
}

const LANGUAGES = {
  en: {
    locale: 'en-US',
    rich: 'Show me Markdown with a table and code',
    pay: 'Send $30 to Alice and $600 to Bob',
    ask: 'Reserve a table for two',
    approve: /^Approve \$30/,
    inspector: 'Show inspector',
    settings: 'Settings',
  },
  ja: {
    locale: 'ja-JP',
    rich: '表とコードのある Markdown を見せて',
    pay: '花子さんに30ドル、太郎さんに600ドル送金してください',
    ask: 'レストランの席を予約して',
    approve: /^30\.00ドル/,
    inspector: /インスペクター/,
    settings: '設定',
  },
} as const

const wanted = process.argv.slice(2)
await mkdir(FOLDER, { recursive: true })
await buildPage()
const testDemo = await openTestDemo()
for (const [size, options] of Object.entries(SIZES))
  for (const language of ['en', 'ja'] as const)
    for (const colorScheme of ['light', 'dark'] as const) {
      const variant = `${size}-${language}-${colorScheme}`
      if (wanted.length > 0 && !wanted.some((name) => variant.includes(name))) continue
      const { locale } = LANGUAGES[language]
      const page = await testDemo.visit({ ...options, locale, colorScheme })
      page.setDefaultTimeout(15_000)
      await takeAll(page, language, variant)
      await testDemo.leave().catch((error: unknown) => console.error(variant, error))
    }
await testDemo[Symbol.asyncDispose]()
process.exit()

async function takeAll(page: Page, language: 'en' | 'ja', variant: string): Promise<void> {
  const words = LANGUAGES[language]
  const { say, idle, log } = readPage(page)
  const isZoomed = variant.startsWith('zoom')
  const steps: Record<string, () => Promise<unknown>> = {
    '1-welcome': () => page.locator('.welcome, main').first().waitFor(),
    '2-rich': async () => {
      await say(words.rich)
      await log.locator('.hljs-keyword, .adk-code').first().waitFor()
      await idle()
    },
    '3-pending': async () => {
      await say(words.pay)
      await log
        .locator('.adk-approval, .adk-tool[data-state="approval-requested"]')
        .last()
        .waitFor()
      await idle()
    },
    '4-receipt': async () => {
      await log.getByRole('button', { name: words.approve }).click()
      await idle()
      await page.waitForTimeout(1_500)
    },
    '5-question': async () => {
      await say(words.ask)
      await log.locator('form').last().waitFor()
      await idle()
    },
    '6-inbox': async () => {
      await page.keyboard.press('Alt+I')
      await page.waitForTimeout(600)
    },
    '7-settings': async () => {
      await page.keyboard.press('Alt+I')
      await page.getByRole('button', { name: words.settings }).click()
      await page.waitForTimeout(400)
    },
    '8-inspector': async () => {
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: words.inspector }).first().click()
      await page.waitForTimeout(1_500)
    },
    '9-approvals': async () => {
      await page.goto(new URL('/?view=approvals', page.url()).href)
      await page.waitForTimeout(1_500)
    },
  }
  for (const [name, step] of Object.entries(steps)) {
    if (isZoomed && name === '7-settings') continue
    await step().catch((error: unknown) =>
      console.error(variant, name, String(error).split('\n')[0]),
    )
    const path = fileURLToPath(new URL(`${name}-${variant}.png`, FOLDER))
    await page.screenshot({ path })
  }
}
