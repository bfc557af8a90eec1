import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'

import { build, mergeConfig, preview } from 'vite'

import { temporaryDirectory } from '../../test/support/temporary-directory.ts'
import { createPageConfig } from '../../packages/studio/page-config.ts'

const PLUGIN = fileURLToPath(new URL('../../apps/demo/src/page/plugin.tsx', import.meta.url))

/** The paths that a page loads itself from. */
const OWN_PATHS = String.raw`assets/|theme\.js|\?|$`

/** Serves the page of the demo, built with version 7 of the AI SDK, in front of a demo. */
export async function servePageWith7(demoUrl: string) {
  const { resolve } = createRequire(import.meta.url)
  const alias = { '@ai-sdk/react': resolve('@ai-sdk/react-7'), ai: resolve('ai-7') }
  const folder = await temporaryDirectory()
  const page = createPageConfig({ outDir: folder.path, plugin: PLUGIN })
  const config = mergeConfig(page, { configFile: false, logLevel: 'error', resolve: { alias } })
  await build({ ...config, mode: 'test' })
  const proxy = { [`^/(?!${OWN_PATHS})`]: { target: demoUrl, ws: true } }
  const served = await preview({ ...config, preview: { host: '127.0.0.1', port: 0, proxy } })
  const { port } = served.httpServer.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    async [Symbol.asyncDispose](): Promise<void> {
      await served.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}
