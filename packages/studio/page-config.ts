import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'

import react from '@vitejs/plugin-react'
import type { Plugin, UserConfig } from 'vite'

/** The studio's server during development. */
const SERVER = `http://127.0.0.1:${process.env['PORT'] ?? '8000'}`

/** The paths of the studio's server. */
const PATHS = [
  '/stream',
  '/chats',
  '/approvals',
  '/grants',
  '/delegations',
  '/channels',
  '/events',
  '/sign-ins',
  '/studio',
  '/live',
]

interface PageOptions {
  /** The output folder. */
  readonly outDir: string
  /** The module with the plug-in, which exports `plugin`. Default: none. */
  readonly plugin?: string
  /**
   * Whether to add files that are compressed with gzip, for browsers on other machines: over plain HTTP, they do not accept Brotli. Default
   * false.
   */
  readonly gzip?: boolean
  /** The paths of the server that the plug-in uses. Default: none. */
  readonly paths?: readonly string[]
}

/** Returns the configuration that builds the page, with or without a plug-in. */
export function createPageConfig(options: PageOptions): UserConfig {
  const { outDir, plugin, paths = [], gzip: hasGzip = false } = options
  return {
    root: fileURLToPath(new URL('.', import.meta.url)),
    plugins: [react(), compress(hasGzip ? ['br', 'gz'] : ['br'])],
    resolve: {
      conditions: ['@adk-stream-protocol/source', 'module', 'browser', 'import', 'default'],
      ...(plugin !== undefined && { alias: { '#plugin': plugin } }),
    },
    // The policy of the page forbids inline content; the polyfill would be a script of its own for browsers we do not target.
    build: {
      outDir,
      emptyOutDir: true,
      target: 'es2023',
      modulePreload: { polyfill: false },
      assetsInlineLimit: 0,
      // Markdown, the colours of code, formulas and the inspector are files of their own.
      chunkSizeWarningLimit: 800,
    },
    server: {
      // The `Host` header stays that of the page, so that the server takes its requests as those of its own origin.
      proxy: Object.fromEntries(
        [...PATHS, ...paths].map((path) => [path, { target: SERVER, ws: path === '/live' }]),
      ),
    },
  }
}

const ENCODERS = { br: promisify(brotliCompress), gz: promisify(gzip) }

/** Writes compressed copies of each text file of the build. The server sends the copy that the browser accepts. */
function compress(endings: readonly (keyof typeof ENCODERS)[]): Plugin {
  let folder = ''
  return {
    name: 'compress',
    // A test builds in its own mode and needs no copies.
    apply: (_config, { command, mode }) => command === 'build' && mode === 'production',
    configResolved({ root, build }) {
      folder = resolve(root, build.outDir)
    },
    async closeBundle() {
      const files = await readdir(folder, { recursive: true })
      for (const file of files.filter((name) => /\.(?:js|css|html|svg)$/.test(name))) {
        const content = await readFile(join(folder, file))
        for (const ending of endings)
          await writeFile(join(folder, `${file}.${ending}`), await ENCODERS[ending](content))
      }
    },
  }
}
