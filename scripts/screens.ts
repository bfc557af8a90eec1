import { mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

import type { Page } from 'playwright-core'

import { buildDemoPage } from '../apps/demo/scripts/build-page.ts'
import { chatPage } from '../e2e/support/chat-page.ts'
import { syllables } from '../e2e/support/make-wav.ts'
import { openWithMicrophone } from '../e2e/support/talk-page.ts'
import { openTestDemo } from '../e2e/support/test-demo.ts'

/**
 * Takes screenshots of the demo in both languages and themes, on a desktop, on a phone and at a zoom of 400 %, for people
 * who review its design: `npm run screenshots:all`. Further arguments select variants by name, such as `ja-dark`, and `--only=voice` a
 * part: `chat`, `kinds`, `link` or `voice`.
 */
const FOLDER = new URL('../e2e/screenshots/screens/', import.meta.url)

const SIZES = {
  desktop: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
  // 1280 × 900 at 400 %.
  zoom: { viewport: { width: 320, height: 225 }, deviceScaleFactor: 2 },
}

const SPEECH = [{ hertz: 0, ms: 300 }, ...syllables(440, 1_000), { hertz: 0, ms: 60_000 }]

const LANGUAGES = {
  en: {
    locale: 'en-US',
    rich: 'Show me Markdown with a table and code',
    pay: 'Send $30 to Alice and $600 to Bob',
    ask: 'Reserve a table for two',
    weather: 'What is the weather in Tokyo and London?',
    agent: 'Ask the accountant to send $20 to Alice',
    notes: 'Delete my old notes',
    steps: 'Plan a weekend in Kyoto',
    large: 'Send $600 to Alice',
    share: 'Ask another person…',
    talk: 'Talk hands-free',
    captions: 'Captions',
    mute: 'Mute the microphone',
    approve: /^Approve \$30/,
    inspector: 'Show inspector',
    settings: 'Settings',
  },
  ja: {
    locale: 'ja-JP',
    rich: '表とコードのある Markdown を見せて',
    pay: '花子さんに30ドル、太郎さんに600ドル送金してください',
    ask: 'レストランの席を予約して',
    weather: '東京とロンドンの天気は？',
    agent: '経理に頼んで、花子さんに20ドル送金して',
    notes: '古いメモを削除して',
    steps: '京都の週末旅行を計画して',
    large: '花子さんに600ドル送金してください',
    share: 'ほかの人に頼む…',
    talk: 'ハンズフリーで話す',
    captions: '字幕',
    mute: 'マイクをミュート',
    approve: /^30\.00ドル/,
    inspector: /インスペクター/,
    settings: '設定',
  },
} as const

const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
const only = process.argv.find((argument) => argument.startsWith('--only='))?.slice(7)
const isWanted = (part: string): boolean => only === undefined || only === part
await mkdir(FOLDER, { recursive: true })
await buildDemoPage()
const testDemo = await openTestDemo({ live: { playback: 'real-time' } })
for (const [size, options] of Object.entries(SIZES))
  for (const language of ['en', 'ja'] as const)
    for (const colorScheme of ['light', 'dark'] as const) {
      const variant = `${size}-${language}-${colorScheme}`
      if (wanted.length > 0 && !wanted.some((name) => variant.includes(name))) continue
      const { locale } = LANGUAGES[language]
      const contextOptions = { ...options, locale, colorScheme }
      if (isWanted('chat'))
        await takeAll(await testDemo.openPage(contextOptions), language, variant)
      if (isWanted('kinds'))
        await takeKinds(await testDemo.openPage(contextOptions), language, variant)
      if (isWanted('link'))
        await takeLink(await testDemo.openPage(contextOptions), language, {
          contextOptions,
          variant,
        })
      if (isWanted('voice')) {
        testDemo.emulator.live.queueTranscript(LANGUAGES[language].pay)
        await takeVoice(
          await openWithMicrophone(testDemo, SPEECH, contextOptions),
          language,
          variant,
        )
      }
      await testDemo.closePages().catch((error: unknown) => console.error(variant, error))
    }
await testDemo[Symbol.asyncDispose]()
process.exit()

/** Takes screenshots of a chat without voice. */
async function takeAll(page: Page, language: 'en' | 'ja', variant: string): Promise<void> {
  const texts = LANGUAGES[language]
  const { send, waitUntilIdle, log } = chatPage(page)
  const steps: Record<string, () => Promise<unknown>> = {
    '1-welcome': () => page.locator('.welcome, main').first().waitFor(),
    '2-rich': async () => {
      await send(texts.rich)
      await log.locator('.hljs-keyword, .adk-code').first().waitFor()
      await waitUntilIdle()
    },
    '3-pending': async () => {
      await send(texts.pay)
      await log
        .locator('.adk-approval, .adk-tool[data-state="approval-requested"]')
        .last()
        .waitFor()
      await waitUntilIdle()
    },
    '4-receipt': async () => {
      await log.getByRole('button', { name: texts.approve }).click()
      await waitUntilIdle()
      await page.waitForTimeout(1_500)
    },
    '5-question': async () => {
      await send(texts.ask)
      await log.locator('form').last().waitFor()
      await waitUntilIdle()
    },
    '6-inbox': async () => {
      await page.keyboard.press('Alt+I')
      await page.waitForTimeout(600)
    },
    '7-settings': async () => {
      await page.keyboard.press('Alt+I')
      await page.getByRole('button', { name: texts.settings }).click()
      await page.waitForTimeout(400)
    },
    '8-inspector': async () => {
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: texts.inspector }).first().click()
      await page.waitForTimeout(1_500)
    },
    '9-approvals': async () => {
      await page.goto(new URL('/?view=approvals', page.url()).href)
      await page.waitForTimeout(1_500)
    },
  }
  await take(page, variant, steps)
}

/** Takes screenshots of a plain tool, an agent that is used as a tool, an MCP server, and steps. */
async function takeKinds(page: Page, language: 'en' | 'ja', variant: string): Promise<void> {
  const texts = LANGUAGES[language]
  const { send, waitUntilIdle, log } = chatPage(page)
  const sendAndWaitFor = (text: string, card: string) => async () => {
    await send(text)
    await log.locator(card).last().waitFor()
    await waitUntilIdle()
  }
  await take(page, variant, {
    'a-weather': sendAndWaitFor(texts.weather, '.weather'),
    'b-agent': sendAndWaitFor(texts.agent, '.adk-approval'),
    'c-mcp': sendAndWaitFor(texts.notes, '[data-tool=notes_delete]'),
    'd-steps': sendAndWaitFor(texts.steps, '.adk-steps li[data-state=waiting]'),
    'e-offline': async () => {
      await page.context().setOffline(true)
      await log.locator('.adk-primary:not(.adk-hold):visible').last().click()
      await page.waitForTimeout(800)
    },
  })
  await page.context().setOffline(false)
}

/** Takes screenshots of the link for a second approver, and of the page that it opens. */
async function takeLink(
  page: Page,
  language: 'en' | 'ja',
  { contextOptions, variant }: { readonly contextOptions: object; readonly variant: string },
): Promise<void> {
  const texts = LANGUAGES[language]
  const { send, log } = chatPage(page)
  await take(page, variant, {
    'f-share': async () => {
      await send(texts.large)
      // A large payment is approved by pressing the button twice.
      const approve = log.locator('.adk-hold')
      await approve.click()
      await page.waitForTimeout(600)
      await approve.click()
      await log.getByRole('button', { name: texts.share }).click()
      await log.locator('.adk-qr').scrollIntoViewIfNeeded()
    },
  })
  const url = await log.locator('.adk-share-url input').inputValue()
  const other = await testDemo.openPage({ ...contextOptions, url })
  await take(other, variant, { 'g-link': () => other.getByRole('listitem').first().waitFor() })
}

/** Takes screenshots of a voice conversation with a pending approval. */
async function takeVoice(page: Page, language: 'en' | 'ja', variant: string): Promise<void> {
  const { talk, captions, mute } = LANGUAGES[language]
  await take(page, variant, {
    'h-talk-off': () => page.locator('.adk-stage').waitFor(),
    'i-talk': async () => {
      await page.getByRole('button', { name: talk }).click()
      await page.locator('.adk-stage[data-state=person-speaking]').waitFor()
    },
    'j-talk-pending': async () => {
      await page.locator('.adk-approval').first().waitFor()
      await page.waitForTimeout(1_000)
    },
    // The cards are scrolled out of view, so the first one is pinned.
    'k-talk-pinned': async () => {
      await page.getByRole('button', { name: captions }).click()
      await page.locator('.adk-stage[data-state=approval]').waitFor()
      await page.locator('.scroller').evaluate((scroller) => scroller.scrollTo(0, 0))
      // On a desktop, the first card is still in view.
      await page
        .locator('.adk-pinned')
        .waitFor({ timeout: 3_000 })
        .catch(() => undefined)
    },
    'l-talk-muted': async () => {
      await page.getByRole('button', { name: mute }).click()
      await page.locator('.scroller').evaluate((scroller) => scroller.scrollTo(0, 1e6))
    },
  })
}

/** Runs the steps in order, and takes a screenshot after each. The next step runs even if one fails. */
async function take(
  page: Page,
  variant: string,
  steps: Record<string, () => Promise<unknown>>,
): Promise<void> {
  page.setDefaultTimeout(15_000)
  for (const [name, step] of Object.entries(steps)) {
    await step().catch((error: unknown) =>
      console.error(variant, name, String(error).split('\n')[0]),
    )
    const path = fileURLToPath(new URL(`${name}-${variant}.png`, FOLDER))
    await page.screenshot({ path })
  }
}
