/**
 * Uses the packed packages: serves an agent on the emulator, chats, approves, and imports modules. Prints the results. The arguments are the
 * database file and the names of the modules.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { FunctionTool, LlmAgent } from '@google/adk'
import { sseTransport } from 'adk-stream-protocol/client'
import type { AdkUIMessage } from 'adk-stream-protocol/client'
import type { Chunk } from 'adk-stream-protocol/protocol'
import { createBridge } from 'adk-stream-protocol/server'
import { openSqliteStore } from 'adk-stream-protocol/store'
import { toExpressHandler } from 'adk-stream-protocol/use/express'
import { toHonoHandler } from 'adk-stream-protocol/use/hono'
import { toRouteHandlers } from 'adk-stream-protocol/use/next'
import { toNodeListener } from 'adk-stream-protocol/use/node'
import { isToolUIPart, readUIMessageStream } from 'ai'
import { startEmulator } from 'gemini-emulator'

const [file = '', ...names] = process.argv.slice(2)
const exporting: string[] = []
for (const name of names) {
  const module = (await import(name)) as object
  if (Object.keys(module).length > 0) exporting.push(name)
}

const emulator = await startEmulator()
process.env['GOOGLE_GEMINI_BASE_URL'] = emulator.baseUrl
process.env['GOOGLE_API_KEY'] = 'any'

let runs = 0
const pay = new FunctionTool({
  name: 'pay',
  description: 'Pays.',
  requireConfirmation: true,
  execute: () => ({ runs: (runs += 1) }),
})
let finish: (type: Chunk['type']) => void
const said = new Promise<Chunk['type']>((resolve) => (finish = resolve))
const bridge = createBridge({
  agent: new LlmAgent({ name: 'assistant', model: 'gemini-2.5-flash', tools: [pay] }),
  store: openSqliteStore({ path: file }),
  authenticate: () => ({ id: 'me' }),
  onChunk: ({ type }) => type === 'text-end' && finish(type),
})
const server = createServer(toNodeListener(bridge)).listen(0, '127.0.0.1')
await once(server, 'listening')
// A server that listens on a port has such an address.
const { port } = server.address() as AddressInfo

const transport = sseTransport({ url: `http://127.0.0.1:${port}` })
const question: AdkUIMessage = {
  id: 'question',
  role: 'user',
  parts: [{ type: 'text', text: '[[call pay {}]] [[then]] [[say Paid.]]' }],
}
const stream = await transport.sendMessages({
  chatId: 'chat',
  messageId: undefined,
  trigger: 'submit-message',
  abortSignal: undefined,
  messages: [question],
})
let asked: AdkUIMessage | undefined
for await (const message of readUIMessageStream<AdkUIMessage>({ stream, terminateOnError: true }))
  asked = message
const part = asked?.parts.find(isToolUIPart)
const runsBefore = runs
const decided =
  part?.state === 'approval-requested' &&
  (await transport.decide({ approvalId: part.approval.id, approved: true }))
const last = await said

await bridge.close()
server.close()
server.closeAllConnections()
await emulator.close()
const hosts = [toExpressHandler(bridge), toHonoHandler(bridge), toRouteHandlers(bridge).GET]
// ADK also logs to stdout. This is the last line.
process.stdout.write(
  '\n' +
    JSON.stringify({
      asked: part?.state,
      runsBefore,
      decided,
      runs,
      said: last,
      hosts: hosts.map((host) => typeof host),
      exporting,
    }),
)
