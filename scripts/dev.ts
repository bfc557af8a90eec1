import { spawn } from 'node:child_process'
import path from 'node:path'

import { createServer } from 'vite'

import { buildDemoPage } from '../apps/demo/scripts/build-page.ts'

/**
 * Runs the demo for development: Vite serves the page and updates it in place, and the server restarts when one of its source files
 * changes, also those of the packages. Vite forwards all requests to the server.
 */
const DEMO = path.join(import.meta.dirname, '../apps/demo')

// The server refuses to start without a built page, although Vite serves the page here.
await buildDemoPage()

const server = spawn(
  process.execPath,
  [
    path.join(import.meta.dirname, '../node_modules/tsx/dist/cli.mjs'),
    'watch',
    '--clear-screen=false',
    '--conditions=@adk-stream-protocol/source',
    'src/server/main.ts',
  ],
  { cwd: DEMO, stdio: 'inherit' },
)
const page = await createServer({ configFile: path.join(DEMO, 'vite.config.ts') })
await page.listen()
page.printUrls()

server.on('exit', (code) => {
  void page.close().finally(() => process.exit(code ?? 1))
})
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    server.kill(signal)
  })
