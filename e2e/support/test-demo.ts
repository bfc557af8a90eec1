import {
  type Emulator,
  firstOf,
  type LiveOptions,
  type Prompt,
  type Responder,
  type RecordedRequest,
  scriptResponder,
  startEmulator,
} from 'gemini-emulator'
import type { BrowserContextOptions, Page } from 'playwright-core'

import { demoModel } from '../../apps/demo/src/model/demo-model.ts'
import { type Demo, startDemo } from '../../apps/demo/src/server/start-demo.ts'
import {
  type TemporaryDirectory,
  temporaryDirectory,
} from '../../test/support/temporary-directory.ts'
import { builtPage } from '../../test/support/built-page.ts'
import { TestContexts } from './browser-contexts.ts'

export interface TestDemoOptions {
  /** Added to the environment of the server. */
  readonly variables?: Readonly<Record<string, string>>
  /** Options of the model's live sessions. */
  readonly live?: LiveOptions
}

interface OpenPageOptions extends BrowserContextOptions {
  readonly url?: string
  /** The mode that is stored in the browser. Default `sse`. */
  readonly mode?: 'sse' | 'live' | 'direct'
  /** Opens the page in a browser of its own with these flags. */
  readonly flags?: readonly string[]
  /** Runs before the page is loaded. */
  readonly prepare?: (page: Page) => Promise<void>
}

interface Started {
  readonly emulator: Emulator
  readonly directory: TemporaryDirectory
  readonly demo: Demo
}

/** Starts a demo for one test or for a script. `useTestDemo` starts one for all tests of a file. */
export async function openTestDemo(options?: TestDemoOptions): Promise<TestDemo> {
  const testDemo = new TestDemo(options)
  await testDemo.start()
  return testDemo
}

/** The demo with an emulated model and a real browser. */
export class TestDemo implements AsyncDisposable {
  readonly #options: TestDemoOptions
  readonly #responders = new Map<string, Responder>()
  readonly #contexts = new TestContexts()
  #started: Started | undefined

  constructor(options: TestDemoOptions = {}) {
    this.#options = options
  }

  async start(): Promise<void> {
    const emulator = await startEmulator({
      paceMs: 5,
      respond: firstOf((prompt) => this.#respond(prompt), scriptResponder, demoModel),
      live: this.#options.live ?? {},
    })
    await builtPage()
    const directory = await temporaryDirectory()
    const demo = await this.#startServer({ emulator, directory, port: '0' })
    this.#started = { emulator, directory, demo }
  }

  get emulator(): Emulator {
    return this.#running.emulator
  }

  /** The running server. */
  get demo(): Demo {
    return this.#running.demo
  }

  get dataDir(): string {
    return this.#running.directory.path
  }

  /** Stops the server and starts it again at the same address. */
  async restart(): Promise<void> {
    const { emulator, directory, demo } = this.#running
    const { port } = new URL(demo.url)
    await demo[Symbol.asyncDispose]()
    const restarted = await this.#startServer({ emulator, directory, port })
    this.#started = { emulator, directory, demo: restarted }
  }

  /** Opens a page as a new user. */
  async openPage({
    url = this.demo.url,
    mode = 'sse',
    prepare,
    ...options
  }: OpenPageOptions = {}): Promise<Page> {
    const page = await this.#contexts.openPage(url, options)
    await page.addInitScript((chosen) => {
      if (localStorage.getItem('mode') === null) localStorage.setItem('mode', chosen)
    }, mode)
    await prepare?.(page)
    await page.goto(url)
    return page
  }

  /** Closes the pages. Throws if one of them had an exception or violated the security policy. */
  closePages(): Promise<void> {
    return this.#contexts.closeWithoutErrors()
  }

  /** Sets how the model responds to a prompt that contains this text. */
  respondTo(text: string, respond: Responder): void {
    this.#responders.set(text, respond)
  }

  /** Returns the HTTP requests to the model that contain this text. */
  findModelRequests(text: string): RecordedRequest[] {
    return this.emulator.requests.filter(({ body }) => JSON.stringify(body).includes(text))
  }

  /** Returns how often this text was sent to the model, over HTTP or on a live session. */
  countSentToModel(text: string): number {
    const frames = this.emulator.live.sessions.flatMap(({ received }) => received)
    const sent = frames.filter((frame) => JSON.stringify(frame).includes(text))
    return this.findModelRequests(text).length + sent.length
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#contexts.close()
    await this.#started?.demo[Symbol.asyncDispose]()
    await this.#started?.emulator.close()
    await this.#started?.directory[Symbol.asyncDispose]()
  }

  get #running(): Started {
    if (!this.#started)
      throw new Error(
        'The demo has not started. Use it in a test, not while the tests are collected.',
      )
    return this.#started
  }

  #startServer({
    emulator,
    directory,
    port,
  }: Omit<Started, 'demo'> & { readonly port: string }): Promise<Demo> {
    return startDemo({
      PORT: port,
      DATA_DIR: directory.path,
      GOOGLE_API_KEY: 'e2e',
      GOOGLE_GEMINI_BASE_URL: emulator.baseUrl,
      ...this.#options.variables,
    })
  }

  #respond(prompt: Prompt): ReturnType<Responder> {
    const last = JSON.stringify(prompt.contents.at(-1))
    return [...this.#responders].find(([text]) => last.includes(text))?.[1](prompt)
  }
}
