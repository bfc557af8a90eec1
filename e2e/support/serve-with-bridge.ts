import { join } from 'node:path'

import { type BaseTool, LlmAgent } from '@google/adk'
import type { BridgeOptions } from 'adk-stream-protocol/server'
import { createBridge, signedCookie } from 'adk-stream-protocol/server'
import { openSqliteStore } from 'adk-stream-protocol/store'
import { toUpgradeListener } from 'adk-stream-protocol/use/node'
import { createPage, SECURITY_HEADERS } from 'adk-stream-protocol-studio'
import type { Emulator } from 'gemini-emulator'

import { openHttpServer } from '../../apps/demo/src/server/http-server.ts'
import { openModel } from '../../apps/demo/src/server/model.ts'
import { readSettings } from '../../apps/demo/src/server/settings.ts'

interface ServeOptions {
  /** The directory of the built page. */
  readonly pageDir: string
  /** The directory of the database. */
  readonly dataDir: string
  /** Default none. */
  readonly tools?: BaseTool[]
  /** Where the bridge is mounted. Default: at the root. */
  readonly basePath?: string
  /** How long a turn continues without a reader. Default 0. */
  readonly disconnectGraceMs?: number
  /** Default: a free one. */
  readonly port?: number
  readonly signIn?: BridgeOptions['signIn']
}

/** Serves a built page, with the demo's security headers, and a bridge with an agent. */
export async function serveWithBridge(emulator: Emulator, options: ServeOptions) {
  const { pageDir, dataDir, tools = [], basePath = '', disconnectGraceMs = 0 } = options
  const { port = 0, signIn } = options
  const environment = { GOOGLE_API_KEY: 'e2e', GOOGLE_GEMINI_BASE_URL: emulator.baseUrl }
  const model = await openModel(readSettings(environment))
  const store = await openSqliteStore({ path: join(dataDir, 'chats.db') })
  const bridge = createBridge({
    agent: new LlmAgent({ name: 'assistant', model: model.llm, tools }),
    store,
    appName: 'page',
    basePath,
    disconnectGraceMs,
    authenticate: signedCookie({ secret: () => store.secret('cookie') }),
    live: { model: model.live },
    ...(signIn && { signIn }),
  })
  const page = createPage(pageDir)
  const server = await openHttpServer({
    host: '127.0.0.1',
    port,
    drainMs: 500,
    upgrade: toUpgradeListener(bridge),
    listener: (request, response) => {
      for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value)
      page(request, response, () => void bridge.node(request, response))
    },
  })
  return {
    url: server.url,
    async [Symbol.asyncDispose]() {
      await bridge.close({ drainMs: 0 })
      await server[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}
