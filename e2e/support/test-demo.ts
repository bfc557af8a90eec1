import {
  type Emulator,
  firstOf,
  type LiveOptions,
  type Responder,
  type RecordedRequest,
  scriptResponder,
  startEmulator,
} from 'gemini-emulator'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'

import type { Mode } from '../../apps/demo/src/page/settings.ts'
import { demoModel } from '../../apps/demo/src/model/demo-model.ts'
import { type Demo, startDemo } from '../../apps/demo/src/server/start-demo.ts'
import { temporaryDirectory } from '../../apps/demo/test/support/temporary-directory.ts'
import { builtPage } from '../../test/support/built-page.ts'
import {
  acquireContext,
  openContext,
  type PooledContext,
  releaseContext,
} from './browser-contexts.ts'
import { launchChromium } from './launch-chromium.ts'

/** The demo with an emulated model and a real browser. */
export interface TestDemo extends AsyncDisposable {
  readonly emulator: Emulator
  /** The running server. */
  readonly demo: Demo
  readonly dataDir: string
  /** Stops the server and starts it again at the same address. */
  restart(): Promise<void>
  /** Closes the pages. Throws if one of them had an exception or violated the security policy. */
  closePages(): Promise<void>
  /** Opens a page as a new user. */
  openPage(options?: OpenPageOptions): Promise<Page>
  /** Sets how the model responds to a prompt that contains this text. */
  respondTo(text: string, respond: Responder): void
  /** Returns the HTTP requests to the model that contain this text. */
  findModelRequests(text: string): RecordedRequest[]
  /** Returns how often this text was sent to the model, over HTTP or on a live session. */
  countSentToModel(text: string): number
}

interface OpenPageOptions extends BrowserContextOptions {
  readonly url?: string
  /** The mode that is stored in the browser. Default `sse`. */
  readonly mode?: Mode
  /** Opens the page in a browser of its own with these flags. */
  readonly flags?: readonly string[]
  /** Runs before the page is loaded. */
  readonly prepare?: (page: Page) => Promise<void>
}

export interface TestDemoOptions {
  /** Options of the model's live sessions. */
  readonly live?: LiveOptions
}

/** Starts the demo. `variables` are added to the environment of the server. */
export async function openTestDemo(
  variables: Record<string, string> = {},
  { live = {} }: TestDemoOptions = {},
): Promise<TestDemo> {
  const responders = new Map<string, Responder>()
  const testResponder: Responder = (prompt) => {
    const last = JSON.stringify(prompt.contents.at(-1))
    return [...responders].find(([text]) => last.includes(text))?.[1](prompt)
  }
  const emulator = await startEmulator({
    paceMs: 5,
    respond: firstOf(testResponder, scriptResponder, demoModel),
    live,
  })
  await builtPage()
  const directory = await temporaryDirectory()
  const start = (port: string) =>
    startDemo({
      PORT: port,
      DATA_DIR: directory.path,
      GOOGLE_API_KEY: 'e2e',
      GOOGLE_GEMINI_BASE_URL: emulator.baseUrl,
      ...variables,
    })
  const findModelRequests = (text: string): RecordedRequest[] =>
    emulator.requests.filter((request) => JSON.stringify(request.body).includes(text))
  let demo = await start('0')
  const shared: PooledContext[] = []
  const separate: { readonly browser: Browser; readonly context: PooledContext }[] = []
  const closeContexts = async (): Promise<string[]> => {
    const errors = await Promise.all(shared.splice(0).map(releaseContext))
    for (const { browser, context } of separate.splice(0)) {
      errors.push(context.errors)
      await browser.close()
    }
    return errors.flat()
  }
  const closePages = async (): Promise<void> => {
    const errors = await closeContexts()
    if (errors.length > 0) throw new Error(`The page had errors: ${errors.join(', ')}`)
  }
  return {
    emulator,
    get demo() {
      return demo
    },
    dataDir: directory.path,
    async restart() {
      const { port } = new URL(demo.url)
      await demo[Symbol.asyncDispose]()
      demo = await start(port)
    },
    closePages,
    openPage: async ({ url = demo.url, mode = 'sse', flags, prepare, ...options } = {}) => {
      // With reduced motion, popovers get their colours at once, and the page draws half as many frames.
      const contextOptions = { locale: 'en-US', reducedMotion: 'reduce' as const, ...options }
      const browser = flags && (await launchChromium(flags))
      const pooled = await (browser
        ? openContext(browser, contextOptions)
        : acquireContext(contextOptions))
      if (browser) separate.push({ browser, context: pooled })
      else shared.push(pooled)
      pooled.origins.add(new URL(url).origin)
      const page = await pooled.context.newPage()
      await page.addInitScript((chosen) => {
        if (localStorage.getItem('mode') === null) localStorage.setItem('mode', chosen)
      }, mode)
      await prepare?.(page)
      await page.goto(url)
      return page
    },
    respondTo: (text, respond) => void responders.set(text, respond),
    findModelRequests,
    countSentToModel: (text) =>
      findModelRequests(text).length +
      emulator.live.sessions
        .flatMap(({ received }) => received)
        .filter((frame) => JSON.stringify(frame).includes(text)).length,
    async [Symbol.asyncDispose]() {
      await closeContexts()
      await demo[Symbol.asyncDispose]()
      await emulator.close()
      await directory[Symbol.asyncDispose]()
    },
  }
}
