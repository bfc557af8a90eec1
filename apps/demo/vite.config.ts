import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'

import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

/** The demo's server. */
const SERVER = `http://127.0.0.1:${process.env['PORT'] ?? '8000'}`

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  plugins: [react(), compress()],
  resolve: {
    conditions: ['@adk-stream-protocol/source', 'module', 'browser', 'import', 'default'],
  },
  // The policy of the page forbids inline content; the polyfill would be a script of its own for browsers we do not target.
  build: {
    target: 'es2023',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    // Markdown, the colours of code, formulas and the inspector are files of their own.
    chunkSizeWarningLimit: 800,
  },
  server: {
    // The `Host` header stays that of the page, so that the server takes its requests as those of its own origin.
    proxy: Object.fromEntries(
      ['/stream', '/chats', '/approvals', '/events', '/sign-ins', '/direct', '/demo', '/live'].map(
        (path) => [path, { target: SERVER, ws: path === '/live' }],
      ),
    ),
  },
})

/** Writes a Brotli and a gzip copy of each text file of the build. The server sends the copy that the browser accepts. */
function compress(): Plugin {
  const copies = [
    ['br', promisify(brotliCompress)],
    ['gz', promisify(gzip)],
  ] as const
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
        for (const [ending, encode] of copies)
          await writeFile(join(folder, `${file}.${ending}`), await encode(content))
      }
    },
  }
}
