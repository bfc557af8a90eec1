import {
  demoMind,
  type Emulator,
  firstOf,
  type LiveOptions,
  type Mind,
  type RecordedRequest,
  scriptMind,
  startEmulator,
} from 'gemini-emulator'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'

import type { Mode } from '../../apps/demo/src/page/settings/mode.ts'
import { type Demo, startDemo } from '../../apps/demo/src/server/start-demo.ts'
import { temporaryDirectory } from '../../apps/demo/test/support/temporary-directory.ts'
import { launchChromium } from './launch-chromium.ts'

/** A model, a server and a browser, as real as they get without a network. */
export interface World extends AsyncDisposable {
  readonly emulator: Emulator
  /** The server as it runs now. */
  readonly demo: Demo
  readonly dataDir: string
  /** Ends the server and starts it again at the same address. */
  restart(): Promise<void>
  /** Closes the pages; throws if anything went wrong in one: an exception, or what the security policy had to stop. */
  leave(): Promise<void>
  /** Opens a page in a browser of its own. */
  visit(options?: Visit): Promise<Page>
  /** Lets a test decide what the model does for a prompt that holds these words. */
  answer(words: string, mind: Mind): void
  /** The requests for an answer that hold these words. */
  asked(words: string): RecordedRequest[]
  /** How often a model was told these words, over HTTP or live. */
  told(words: string): number
}

interface Visit extends BrowserContextOptions {
  readonly url?: string
  /** How the page talks with the model, as if the reader had chosen it before. */
  readonly mode?: Mode
  /** In a browser with these flags, beside the one that all share. */
  readonly flags?: readonly string[]
}

export interface WorldOptions {
  /** Flags of the browser, for one with a microphone: `microphoneFlags()`. */
  readonly flags?: readonly string[]
  /** How the model talks live. */
  readonly live?: LiveOptions
}

/** Variables for the server beside those that every world has. */
export async function openWorld(
  variables: Record<string, string> = {},
  { flags = [], live = {} }: WorldOptions = {},
): Promise<World> {
  const minds = new Map<string, Mind>()
  const testMind: Mind = (prompt) => {
    const said = JSON.stringify(prompt.contents.at(-1))
    return [...minds].find(([words]) => said.includes(words))?.[1](prompt)
  }
  const emulator = await startEmulator({
    paceMs: 5,
    mind: firstOf(testMind, scriptMind, demoMind),
    live,
  })
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
  const browser = await launchChromium(flags)
  const others: Browser[] = []
  const faults: string[] = []
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
    async leave() {
      await Promise.all(browser.contexts().map((context) => context.close()))
      await Promise.all(others.splice(0).map((other) => other.close()))
      const found = faults.splice(0)
      if (found.length > 0) throw new Error(`The page had faults: ${found.join(', ')}`)
    },
    visit: async ({ url = demo.url, mode = 'sse', flags: own, ...options } = {}) => {
      const other = own && (await launchChromium(own))
      if (other) others.push(other)
      const localStorage = [{ name: 'mode', value: mode }]
      const storageState = { cookies: [], origins: [{ origin: new URL(url).origin, localStorage }] }
      const page = await openPage(other ?? browser, { storageState, ...options }, faults)
      await page.goto(url)
      return page
    },
    answer: (words, mind) => void minds.set(words, mind),
    asked,
    told: (words) =>
      asked(words).length +
      emulator.live.sessions
        .flatMap(({ received }) => received)
        .filter((frame) => JSON.stringify(frame).includes(words)).length,
    async [Symbol.asyncDispose]() {
      await Promise.all([browser, ...others].map((each) => each.close()))
      await demo[Symbol.asyncDispose]()
      await emulator.close()
      await directory[Symbol.asyncDispose]()
    },
  }
}

async function openPage(browser: Browser, options: BrowserContextOptions, faults: string[]) {
  const context = await browser.newContext({ locale: 'en-US', ...options })
  const page = await context.newPage()
  page.setDefaultTimeout(10_000)
  page.on('pageerror', (error) => faults.push(error.message))
  await page.exposeFunction('reportFault', (fault: string) => faults.push(fault))
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
      const { reportFault } = window as unknown as { reportFault: (fault: string) => void }
      reportFault(`${violatedDirective}: ${blockedURI}`)
    })
  })
  return page
}
