import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import type { Page } from 'playwright-core'
import { build } from 'vite'

/** The supported versions of the AI SDK. */
export const STOCK_VERSIONS = ['6', '7'] as const

const ROOT = fileURLToPath(new URL('../cluster-page', import.meta.url))
const TYPES: Readonly<Record<string, string>> = { html: 'text/html', js: 'text/javascript' }

/** Builds the page of `e2e/cluster-page` with one version of the AI SDK, into `<folder>/<version>`. */
export async function buildStockPage(version: '6' | '7', folder: string): Promise<void> {
  const { resolve } = createRequire(import.meta.url)
  const alias = {
    '@ai-sdk/react': resolve('@ai-sdk/react-7'),
    ai: resolve('ai-7'),
    './socket-transport.ts': join(ROOT, 'socket-transport-7.ts'),
  }
  await build({
    root: ROOT,
    base: './',
    configFile: false,
    logLevel: 'error',
    resolve: {
      conditions: ['@adk-stream-protocol/source', 'module', 'browser', 'import', 'default'],
      ...(version === '7' && { alias }),
    },
    build: { outDir: join(folder, version), minify: false, target: 'es2023' },
  })
}

/** Adds the built pages to the origin that a page opens, under `/stock/<version>/`. */
export async function serveStockPages(page: Page, folder: string): Promise<void> {
  // Chromium does not treat a page from `route.fulfill` as local, and would not let it open a socket to this machine.
  await page.context().grantPermissions(['local-network-access'])
  await page.route('**/stock/**', async (route) => {
    const path = new URL(route.request().url()).pathname.replace('/stock/', '')
    const file = path.endsWith('/') ? `${path}index.html` : path
    const contentType = TYPES[file.slice(file.lastIndexOf('.') + 1)] ?? 'application/octet-stream'
    await route.fulfill({ contentType, body: await readFile(join(folder, file)) })
  })
}
