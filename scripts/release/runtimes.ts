/** Runs the server of a quick start with Node, Bun and Deno, from packed packages: `npm run smoke:runtimes`. */
import assert from 'node:assert/strict'
import { on, once } from 'node:events'

import { WebSocket } from 'ws'

import { Browser } from '../../packages/adk-stream-protocol/test/support/browser.ts'
import { readTemplate } from '../../packages/create-adk-stream-protocol/src/templates.ts'
import { emulateProject } from '../../test/docs/support/emulate-project.ts'
import { callsOf, payOnce } from '../../test/docs/support/pay-once.ts'
import type { Running } from './project.ts'
import { findFreePort, Project, report } from './project.ts'

// The binaries are in packages of the registry, so that no install script has to run.
const RUNTIMES = {
  node: 'node --import tsx server.ts',
  bun: './node_modules/@oven/bun-*/bin/bun server.ts',
  deno: './node_modules/@deno/*/deno run --allow-all server.ts',
}

const files = readTemplate('node', 'chat').filter(({ file }) => file !== 'package.json')
await using project = await Project.open('runtimes')
await using emulator = await emulateProject(files)
await project.run('npm init -y\nnpm pkg set type=module')
// The oldest versions that the peer ranges allow. The quick starts install the newest ones.
await project.run(
  'npm install adk-stream-protocol @google/adk @google/genai zod@4.3.0 ws@8.21.0 libsql@0.5.29 tsx',
)
await project.run('npm install --ignore-scripts bun@1.4.4 deno@2.9.5')

for (const [name, command] of Object.entries(RUNTIMES)) {
  const port = await findFreePort()
  const url = `http://127.0.0.1:${port}/adk`
  project.write(files, { 8000: port })
  await project.run('rm -f chats.db*')
  const browser = new Browser(url)
  {
    await using server = await serve(command)
    const [pending, completed] = await payOnce(url)
    assert.deepEqual(callsOf(pending), [['tool-process_payment', 'approval-requested']])
    assert.deepEqual(callsOf(completed)[0], [
      'tool-process_payment',
      'output-available',
      { success: true, amount: 30, recipient: 'Alice' },
    ])
    assert.deepEqual(await sendOverSocket(url), ['start', 'chunk', 'end'])
    const response = await browser.say('Hello')
    assert.match(await response.text(), /\[DONE\]/)
    assert.doesNotMatch(server.printed(), /Error|ERROR/)
  }
  // The process was killed. Its chats are in the database.
  await using server = await serve(command)
  const { messages } = await browser.messages()
  assert.deepEqual(
    messages.map(({ role }) => role),
    ['user', 'assistant'],
  )
  assert.doesNotMatch(server.printed(), /Error|ERROR/)
  report(`${name}: SSE, approval, WebSocket and SQLite work`)
}

async function serve(command: string): Promise<Running> {
  const env = { GOOGLE_GEMINI_BASE_URL: emulator.baseUrl, GOOGLE_API_KEY: 'any' }
  const server = project.start(command, env)
  await server.prints(/Listening on/)
  return server
}

/** Sends a message on the socket. Returns the distinct types of the frames of the reply. */
async function sendOverSocket(url: string): Promise<string[]> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/live`, 'adk-stream.v1')
  await once(socket, 'open')
  const messages = [{ id: 'a', role: 'user', parts: [{ type: 'text', text: 'Hello' }] }]
  socket.send(JSON.stringify({ type: 'send', requestId: 'r', id: 'socket', messages }))
  const types = new Set<string>()
  for await (const [data] of on(socket, 'message') as AsyncIterable<[Buffer]>) {
    const { type, requestId } = JSON.parse(data.toString()) as { type: string; requestId: string }
    if (requestId !== 'r') continue
    types.add(type)
    if (type === 'end' || type === 'error') break
  }
  socket.close()
  return [...types]
}
