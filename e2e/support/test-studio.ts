import { createServer } from 'node:http'

import type { BaseAgent } from '@google/adk'
import {
  type Authenticate,
  type BridgeOptions,
  createBridge,
  signedCookie,
  type SeveralAgentsOptions,
} from 'adk-stream-protocol/server'
import { openSqliteStore } from 'adk-stream-protocol/store'
import { createStudioListener, type StudioDescription } from 'adk-stream-protocol-studio'
import {
  type Emulator,
  firstOf,
  scriptResponder,
  startEmulator,
  toolResponder,
} from 'gemini-emulator'
import type { BrowserContextOptions, Page } from 'playwright-core'

import { builtStudioPage } from '../../test/support/built-page.ts'
import { EmulatedGemini } from '../../test/support/emulated-gemini.ts'
import { listen } from '../../test/support/listen.ts'
import { temporaryDirectory } from '../../test/support/temporary-directory.ts'
import { TestContexts } from './browser-contexts.ts'

interface TestStudioOptions {
  /** Creates the agent, or several by their names. */
  readonly agents: (model: EmulatedGemini) => BaseAgent | SeveralAgentsOptions['agents']
  /** Called for each request of `GET /studio`. */
  readonly info?: (personId: string) => Partial<StudioDescription>
  /** Default: each browser is a person. */
  readonly authenticate?: Authenticate
  /** Further options of the bridge. */
  readonly bridge?: Partial<
    Pick<
      BridgeOptions,
      'approvals' | 'artifactService' | 'delegation' | 'notify' | 'recordModelCalls' | 'signIn'
    >
  >
}

/** The page without a plug-in, with an agent of the test, an emulated model and a real browser. */
export interface TestStudio extends AsyncDisposable {
  readonly url: string
  readonly emulator: Emulator
  openPage(options?: BrowserContextOptions): Promise<Page>
}

/** Starts a studio. When it is disposed, it throws if a page had an exception or violated the security policy. */
export async function openTestStudio(options: TestStudioOptions): Promise<TestStudio> {
  await builtStudioPage()
  const directory = await temporaryDirectory()
  const emulator = await startEmulator({ respond: firstOf(scriptResponder, toolResponder) })
  const store = await openSqliteStore({ path: directory.file('chats.db') })
  const authenticate =
    options.authenticate ?? signedCookie({ secret: () => store.secret('cookie') })
  const agents = options.agents(new EmulatedGemini(emulator.baseUrl))
  const common = { store, authenticate, appName: 'studio', developer: true, ...options.bridge }
  const bridge = createBridge(
    isOneAgent(agents) ? { ...common, agent: agents } : { ...common, agents },
  )
  const listeners = createStudioListener({
    bridge,
    authenticate,
    info: ({ principal }) => ({
      model: 'gemini-2.5-flash',
      emulated: true,
      modes: ['sse'],
      ...options.info?.(principal?.id ?? ''),
    }),
  })
  const server = createServer(listeners.request).on('upgrade', listeners.upgrade)
  const url = `http://127.0.0.1:${await listen(server)}`
  const contexts = new TestContexts()
  return {
    url,
    emulator,
    async openPage(contextOptions = {}) {
      const page = await contexts.openPage(url, contextOptions)
      await page.goto(url)
      return page
    },
    async [Symbol.asyncDispose]() {
      try {
        await contexts.closeWithoutErrors()
      } finally {
        await bridge.close({ drainMs: 0 })
        server.close()
        server.closeAllConnections()
        await store[Symbol.asyncDispose]()
        await emulator.close()
        await directory[Symbol.asyncDispose]()
      }
    },
  }
}

function isOneAgent(agents: BaseAgent | SeveralAgentsOptions['agents']): agents is BaseAgent {
  return typeof agents.name === 'string'
}
