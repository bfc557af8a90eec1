import { fileURLToPath } from 'node:url'

import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

/** The demo's server. */
const SERVER = `http://127.0.0.1:${process.env['PORT'] ?? '8000'}`

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  plugins: [react()],
  resolve: {
    conditions: ['@adk-stream-protocol/source', 'module', 'browser', 'import', 'default'],
  },
  // The policy of the page forbids inline content; the polyfill would be a script of its own for browsers we do not target.
  build: {
    target: 'es2023',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    // The Markdown renderer brings an HTML parser; it is loaded beside the page.
    chunkSizeWarningLimit: 650,
  },
  server: {
    // The `Host` header stays that of the page, so that the server takes its requests as those of its own origin.
    proxy: Object.fromEntries(
      ['/stream', '/chats', '/approvals', '/events', '/direct', '/demo', '/live'].map((path) => [
        path,
        { target: SERVER, ws: path === '/live' },
      ]),
    ),
  },
})
