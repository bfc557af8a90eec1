import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import {
  Gemini,
  InMemoryRunner,
  LiveRequestQueue,
  LlmAgent,
  LogLevel,
  setLogLevel,
} from '@google/adk'
import type { RunConfig } from '@google/adk'
import { createBridge } from 'adk-stream-protocol/server'
import { openSqliteStore } from 'adk-stream-protocol/store'
import { toUpgradeListener } from 'adk-stream-protocol/use/node'

/** A command from the measuring process. */
export type Command =
  | { readonly type: 'read'; readonly collect: boolean }
  /** Only for ADK alone, which has no endpoint: opens chats, or sends a message in the first one. */
  | { readonly type: 'open'; readonly count: number }
  | { readonly type: 'send'; readonly text: string }

/** The figures of a subject's process. */
export interface Reading {
  readonly heapBytes: number
  readonly cpuMs: number
}

const [row = '', baseUrl = ''] = process.argv.slice(2)
setLogLevel(LogLevel.ERROR)

class LiveGemini extends Gemini {
  protected override getLiveHttpOptions() {
    return { ...super.getLiveHttpOptions(), baseUrl }
  }
}

const model = new LiveGemini({
  model: 'gemini-2.5-flash-native-audio-preview-12-2025',
  apiKey: 'any',
})
const agent = new LlmAgent({ name: 'assistant', model, instruction: 'Be brief.' })
// Text in place of speech: each event is a word, and no audio is measured.
const runConfig = { responseModalities: ['TEXT'] } as unknown as Partial<RunConfig>

/** Uses ADK's `runLive` alone, with sessions in memory. */
function openAdk(): {
  open: (count: number) => Promise<void>
  send: (text: string) => Promise<void>
} {
  const runner = new InMemoryRunner({ agent, appName: 'bench' })
  const queues: LiveRequestQueue[] = []
  let completed: (() => void) | undefined
  const follow = async (queue: LiveRequestQueue): Promise<void> => {
    const { id } = await runner.sessionService.createSession({ appName: 'bench', userId: 'person' })
    const run = { userId: 'person', sessionId: id, liveRequestQueue: queue, runConfig }
    for await (const event of runner.runLive(run)) if (event.turnComplete) completed?.()
  }
  const send = (queue: LiveRequestQueue, text: string): Promise<void> =>
    new Promise((resolve) => {
      completed = resolve
      queue.sendContent({ role: 'user', parts: [{ text }] })
    })
  return {
    open: async (count) => {
      for (let opened = 0; opened < count; opened += 1) {
        const queue = new LiveRequestQueue()
        queues.push(queue)
        // Runs until the process exits.
        void follow(queue)
        await send(queue, '[[say Hi.]]')
      }
    },
    send: async (text) => queues[0] && send(queues[0], text),
  }
}

async function openBridge(): Promise<number> {
  const store = await openSqliteStore({ path: process.argv[4] ?? '' })
  const bridge = createBridge({
    agent,
    store,
    authenticate: () => ({ id: 'person' }),
    live: { model, runConfig },
    // All chats belong to one principal.
    limits: { maxLiveChatsPerPrincipal: 1_000 },
  })
  const server = createServer().on('upgrade', toUpgradeListener(bridge))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // A server that listens on a port has such an address.
  return (server.address() as AddressInfo).port
}

/** With `collect`, garbage is collected first. Its CPU time is part of the next reading. */
function read(collect: boolean): Reading {
  if (collect) globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  return { heapBytes: heapUsed + external, cpuMs: (user + system) / 1_000 }
}

const adk = row === 'adk' ? openAdk() : undefined
process.on('message', (command: Command) => {
  void (async () => {
    if (command.type === 'open') await adk?.open(command.count)
    if (command.type === 'send') await adk?.send(command.text)
    process.send?.(read(command.type === 'read' && command.collect))
  })()
})
// The measuring process has ended.
process.on('disconnect', () => process.exit())
process.send?.(row === 'bridge' ? await openBridge() : 0)
