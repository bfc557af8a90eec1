import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

import { LogLevel, setLogLevel } from '@google/adk'
import { firstOf, type Responder, startEmulator } from 'gemini-emulator'
import { build } from 'vite'

import { startDemo } from '../../apps/demo/src/server/start-demo.ts'
import { buildDemoPage } from '../../apps/demo/scripts/build-page.ts'
import { temporaryDirectory } from '../../test/support/temporary-directory.ts'
import { serveWithBridge } from '../../e2e/support/serve-with-bridge.ts'
import { LONG_BLOCKS } from './long-blocks.ts'

/** A child process with the model, the demo, and the peer with its own bridge. It exits with its parent. */
setLogLevel(LogLevel.ERROR)
await using emulator = await startEmulator({
  respond: firstOf(
    replyWith('many words', 5_000),
    replyWith('few words', 60),
    ...Object.entries(LONG_BLOCKS).map(([name, text]) => replySlowlyWith(name, text)),
  ),
})
await using demoData = await temporaryDirectory()
await using peerData = await temporaryDirectory()
await buildDemoPage()
await build({
  root: fileURLToPath(new URL('../../apps/demo/bench/peer', import.meta.url)),
  configFile: fileURLToPath(new URL('../../apps/demo/vite.config.ts', import.meta.url)),
  logLevel: 'error',
  build: { outDir: peerData.file('page') },
})
await using demo = await startDemo({
  PORT: '0',
  DATA_DIR: demoData.path,
  GOOGLE_API_KEY: 'bench',
  GOOGLE_GEMINI_BASE_URL: emulator.baseUrl,
})
await using peer = await serveWithBridge(emulator, {
  pageDir: peerData.file('page'),
  dataDir: peerData.path,
})
process.send?.({ demo: demo.url, peer: peer.url })
await once(process, 'disconnect')

/** Replies to a prompt that contains this text with a number of pieces: Markdown with a list, a table and code. */
function replyWith(prompt: string, count: number): Responder {
  const section =
    '## Part of it\n\nThe quick brown fox jumps over the lazy dog, and **nobody** minds it as long as `code` is fine.\n\n- first of all\n- second of all\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```ts\nconst one = 1\n```\n\n'
  const words = section.match(/\s*\S+\s*?/g) ?? []
  const pieces = Array.from({ length: count }, (_none, at) => words[at % words.length] ?? '')
  return ({ contents }) =>
    JSON.stringify(contents.at(-1)).includes(prompt)
      ? [{ type: 'say', text: pieces.join(''), pieces }]
      : undefined
}

/** Replies with a text word by word, 200 words per second. */
function replySlowlyWith(prompt: string, text: string): Responder {
  return ({ contents }) =>
    JSON.stringify(contents.at(-1)).includes(prompt)
      ? [
          { type: 'pace', ms: 5 },
          { type: 'say', text, pieces: text.match(/\s*\S+/g) ?? [] },
        ]
      : undefined
}
