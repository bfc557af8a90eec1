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
import { giveBack, openContext, takeContext } from './browser-contexts.ts'
import { launchChromium } from './launch-chromium.ts'

/** A model, a server and a browser, as real as they get without a network. */
export interface TestDemo extends AsyncDisposable {
  readonly emulator: Emulator
  /** The server as it runs now. */
  readonly demo: Demo
  readonly dataDir: string
  /** Ends the server and starts it again at the same address. */
  restart(): Promise<void>
  /** Closes the pages; throws if anything went wrong in one: an exception, or what the security policy had to stop. */
  leave(): Promise<void>
  /** Opens a page for a reader that no page has had before. */
  visit(options?: VisitOptions): Promise<Page>
  /** Lets a test decide what the model does for a prompt that holds these words. */
  answer(words: string, respond: Responder): void
  /** The requests for an answer that hold these words. */
  asked(words: string): RecordedRequest[]
  /** How often a model was told these words, over HTTP or live. */
  told(words: string): number
}

interface VisitOptions extends BrowserContextOptions {
  readonly url?: string
  /** How the page talks with the model, as if the reader had chosen it before. */
  readonly mode?: Mode
  /** In a browser with these flags, beside the one that all share. */
  readonly flags?: readonly string[]
  /** Changes the page before it is opened. */
  readonly prepare?: (page: Page) => Promise<void>
}

export interface TestDemoOptions {
  /** How the model talks live. */
  readonly live?: LiveOptions
}

type Context = Awaited<ReturnType<typeof takeContext>>

/** Variables for the server beside those that every testDemo has. */
export async function openTestDemo(
  variables: Record<string, string> = {},
  { live = {} }: TestDemoOptions = {},
): Promise<TestDemo> {
  const responders = new Map<string, Responder>()
  const testResponder: Responder = (prompt) => {
    const said = JSON.stringify(prompt.contents.at(-1))
    return [...responders].find(([words]) => said.includes(words))?.[1](prompt)
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
  const asked = (words: string): RecordedRequest[] =>
    emulator.requests.filter((request) => JSON.stringify(request.body).includes(words))
  let demo = await start('0')
  const taken: Context[] = []
  const others: { readonly browser: Browser; readonly context: Context }[] = []
  const closePages = async (): Promise<string[]> => {
    const faults = await Promise.all(taken.splice(0).map(giveBack))
    for (const { browser, context } of others.splice(0)) {
      faults.push(context.faults)
      await browser.close()
    }
    return faults.flat()
  }
  const leave = async (): Promise<void> => {
    const found = await closePages()
    if (found.length > 0) throw new Error(`The page had faults: ${found.join(', ')}`)
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
    leave,
    visit: async ({ url = demo.url, mode = 'sse', flags, prepare, ...options } = {}) => {
      // Without motion, a popover has its colours at once, and a page draws half of the frames.
      const given = { locale: 'en-US', reducedMotion: 'reduce' as const, ...options }
      const browser = flags && (await launchChromium(flags))
      const used = await (browser ? openContext(browser, given) : takeContext(given))
      if (browser) others.push({ browser, context: used })
      else taken.push(used)
      used.origins.add(new URL(url).origin)
      const page = await used.context.newPage()
      await page.addInitScript((chosen) => {
        if (localStorage.getItem('mode') === null) localStorage.setItem('mode', chosen)
      }, mode)
      await prepare?.(page)
      await page.goto(url)
      return page
    },
    answer: (words, respond) => void responders.set(words, respond),
    asked,
    told: (words) =>
      asked(words).length +
      emulator.live.sessions
        .flatMap(({ received }) => received)
        .filter((frame) => JSON.stringify(frame).includes(words)).length,
    async [Symbol.asyncDispose]() {
      await closePages()
      await demo[Symbol.asyncDispose]()
      await emulator.close()
      await directory[Symbol.asyncDispose]()
    },
  }
}
