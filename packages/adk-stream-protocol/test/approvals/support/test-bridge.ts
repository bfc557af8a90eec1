import { copyFile } from 'node:fs/promises'

import type { BaseLlm, BaseTool } from '@google/adk'
import { Modality } from '@google/genai'
import type { Emulator, Prompt } from 'gemini-emulator'
import { firstOf, scriptResponder } from 'gemini-emulator'

import type { Bridge, BridgeOptions } from '../../../src/server/index.ts'
import { apiKey } from '../../../src/server/auth/authenticate.ts'
import type { Store } from '../../../src/store/store.ts'
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts'
import { temporaryDirectory } from '../../../../../test/support/temporary-directory.ts'
import { assistant } from '../../support/agents.ts'
import { serve, type ServeOptions, type TestServer } from '../../support/serve.ts'
import { Page } from './page.ts'
import { paymentTool, Wallet } from './payments.ts'
import { checkStreams } from './check-streams.ts'

/** The principals, by API key. */
export const PEOPLE = {
  hanako: { id: 'hanako' },
  taro: { id: 'taro' },
  mari: { id: 'mari', roles: ['manager'] },
  mike: { id: 'mike', roles: ['manager'] },
  erin: { id: 'erin', roles: ['executive'] },
} as const

export type Person = keyof typeof PEOPLE

/** A live model that continues to speak while its calls wait. */
export const FREE_MODEL = 'gemini-2.5-flash-native-audio-preview-12-2025'

export interface TestBridgeOptions extends Omit<ServeOptions, 'agent' | 'store' | 'recorded'> {
  /** The live model. Default: one that waits for its calls. */
  readonly liveModel?: string
  /** Whether the bridge has live conversations. Default true. */
  readonly isLive?: boolean
  /** Default: the gated payment. */
  readonly tools?: (wallet: Wallet) => readonly BaseTool[]
  /** Opens the database of the bridge. Default: a SQLite file. */
  readonly openStore?: () => Promise<Store>
  /** The agent with its tools. Default: one agent. */
  readonly agent?: (model: BaseLlm, tools: BaseTool[]) => BridgeOptions['agent']
}

const DATABASE = 'testBridge.db'

let empty: Promise<string> | undefined

/** Returns the path of an empty database with the newest schema, created once per worker: a copy takes less time than migrations. */
function emptyDatabase(): Promise<string> {
  empty ??= (async () => {
    const folder = await temporaryDirectory()
    await (await openSqliteStore({ path: folder.file(DATABASE) })).close()
    return folder.file(DATABASE)
  })()
  return empty
}

/** A bridge with a wallet behind it, on a database file that outlives it. */
export class TestBridge implements AsyncDisposable {
  readonly wallet = new Wallet()
  readonly #options: TestBridgeOptions
  readonly #folder: Awaited<ReturnType<typeof temporaryDirectory>>
  readonly #pages: Page[] = []
  readonly #prompts: Prompt[] = []
  readonly #waiting = new Set<(prompt: Prompt) => void>()
  #running: { readonly server: TestServer; readonly store: Store } | undefined

  private constructor(
    options: TestBridgeOptions,
    folder: Awaited<ReturnType<typeof temporaryDirectory>>,
  ) {
    this.#options = options
    this.#folder = folder
  }

  static async open(options: TestBridgeOptions = {}): Promise<TestBridge> {
    const folder = await temporaryDirectory()
    await copyFile(await emptyDatabase(), folder.file(DATABASE))
    const testBridge = new TestBridge(options, folder)
    await testBridge.#start()
    return testBridge
  }

  get url(): string {
    return this.#server.url
  }

  get emulator(): Emulator {
    return this.#server.emulator
  }

  get bridge(): Bridge {
    return this.#server.bridge
  }

  /** The database of the bridge that runs now. */
  get store(): Store {
    if (!this.#running) throw new Error('The testBridge is closed.')
    return this.#running.store
  }

  /** What the bridge reported to `onError`. */
  get errors(): readonly unknown[] {
    return this.#server.errors
  }

  page(person: Person = 'hanako'): Page {
    const page = new Page(this, person)
    this.#pages.push(page)
    return page
  }

  /** How often the model was called. */
  get asked(): number {
    return this.#prompts.length
  }

  /** Resolves when the model is called with a prompt that contains this text. */
  untilAsked(text: string): Promise<void> {
    return new Promise((resolve) => {
      const look = (prompt: Prompt): void => {
        if (!JSON.stringify(prompt).includes(text)) return
        this.#waiting.delete(look)
        resolve()
      }
      this.#waiting.add(look)
      const last = this.#prompts.at(-1)
      if (last) look(last)
    })
  }

  /** The newest prompt of the model, as JSON. */
  get lastPrompt(): string {
    return JSON.stringify(this.#prompts.at(-1))
  }

  /** The contents of the model's newest prompt. */
  get lastContents(): unknown {
    return this.#prompts.at(-1)?.contents
  }

  /** The final function responses in the newest prompt of the model, in order. */
  get results(): unknown[] {
    return (this.#prompts.at(-1)?.contents ?? []).flatMap(({ parts = [] }) =>
      parts.flatMap(({ functionResponse }) =>
        functionResponse && !functionResponse.willContinue ? [functionResponse.response] : [],
      ),
    )
  }

  /** Closes the bridge and its database, and opens both again on the same file. */
  async restart(): Promise<void> {
    await this.#stop()
    await this.#start()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop()
    for (const page of this.#pages) page.close()
    await this.#folder[Symbol.asyncDispose]()
    await checkStreams(await Promise.all(this.#pages.flatMap(({ streams }) => streams)))
  }

  get #server(): TestServer {
    if (!this.#running) throw new Error('The testBridge is closed.')
    return this.#running.server
  }

  async #start(): Promise<void> {
    const {
      tools = (wallet) => [paymentTool(wallet)],
      agent,
      limits,
      liveModel,
      isLive = true,
      openStore = () => openSqliteStore({ path: this.#folder.file(DATABASE) }),
      respond = firstOf(scriptResponder, () => [{ type: 'say', text: 'OK.' }]),
      ...options
    } = this.#options
    const store = await openStore()
    const given = [...tools(this.wallet)]
    this.#prompts.length = 0
    const server = await serve({
      store,
      respond: (prompt) => {
        this.#prompts.push(prompt)
        for (const look of this.#waiting) look(prompt)
        return respond(prompt)
      },
      ...(isLive && {
        live: (gemini) => ({
          model: gemini,
          runConfig: { responseModalities: [Modality.TEXT] },
          approvalDeadlineMs: options.approvalDeadlineMs ?? 24 * 3_600_000,
        }),
      }),
      authenticate: apiKey(PEOPLE),
      agent: (model) => agent?.(model, given) ?? assistant(model, { tools: given }),
      limits: { sweepMs: 100, ...limits },
      ...(liveModel !== undefined && { liveModel }),
      recorded: false,
      ...options,
    })
    this.#running = { server, store }
  }

  async #stop(): Promise<void> {
    await this.#running?.server[Symbol.asyncDispose]()
    await this.#running?.store.close()
    this.#running = undefined
  }
}
