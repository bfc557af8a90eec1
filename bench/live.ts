import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { startEmulator } from 'gemini-emulator'

import { measureDecisions } from './decisions/measure.ts'
import { LiveClient } from './live-client.ts'
import type { Command, Reading } from './live/subject.ts'
import { median } from './statistics.ts'

const CHATS = 200
const WORDS = 5_000
const PASSES = 5

const folder = await mkdtemp(join(tmpdir(), 'live-bench-'))
const emulator = await startEmulator()
const prompt = `[[say ${'word '.repeat(WORDS)}]]`

/** Starts a subject in its own process. The model and the client are in this one. */
async function startSubject(row: 'adk' | 'bridge'): Promise<{ child: ChildProcess; port: number }> {
  const script = fileURLToPath(new URL('live/subject.ts', import.meta.url))
  const database = join(folder, `${row}.db`)
  const args = ['--expose-gc', '--import', 'tsx', script, row, emulator.baseUrl, database]
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  // The first message of a subject is its port.
  const [port] = (await once(child, 'message')) as [number]
  return { child, port }
}

async function sendCommand(child: ChildProcess, command: Command): Promise<Reading> {
  child.send(command)
  const [reading] = (await once(child, 'message')) as [Reading]
  return reading
}

/** Stops a subject, and waits until its live sessions are closed, too. */
async function stop(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  child.disconnect()
  await exited
}

interface Figures {
  readonly bytesPerChat: number
  readonly microsecondsPerEvent: number
}

/** Opens chats with one short reply each, then measures long replies in one of them. */
async function measure(
  child: ChildProcess,
  subject: { open: (from: number, to: number) => Promise<void>; send: () => Promise<void> },
): Promise<Figures> {
  // Warms up: V8 compiles the code of a chat, which is not memory of a chat.
  await subject.open(0, CHATS)
  const before = await sendCommand(child, { type: 'read', collect: true })
  await subject.open(CHATS, 2 * CHATS)
  const after = await sendCommand(child, { type: 'read', collect: true })
  await subject.send()
  const costs: number[] = []
  for (let pass = 0; pass < PASSES; pass += 1) {
    const from = await sendCommand(child, { type: 'read', collect: false })
    await subject.send()
    const to = await sendCommand(child, { type: 'read', collect: false })
    costs.push(((to.cpuMs - from.cpuMs) * 1_000) / WORDS)
  }
  return {
    bytesPerChat: (after.heapBytes - before.heapBytes) / CHATS,
    microsecondsPerEvent: median(costs),
  }
}

async function measureAdk(): Promise<Figures> {
  const { child } = await startSubject('adk')
  const figures = await measure(child, {
    open: async (from, to) => void (await sendCommand(child, { type: 'open', count: to - from })),
    send: async () => void (await sendCommand(child, { type: 'send', text: prompt })),
  })
  await stop(child)
  return figures
}

async function measureBridge(): Promise<Figures> {
  const { child, port } = await startSubject('bridge')
  const client = await LiveClient.open(`ws://127.0.0.1:${port}/live`)
  const figures = await measure(child, {
    open: async (from, to) => {
      for (let chat = from; chat < to; chat += 1)
        await client.sendMessage(`chat-${chat}`, '[[say Hi.]]')
    },
    send: async () => void (await client.sendMessage('chat-0', prompt)),
  })
  client.close()
  await stop(child)
  return figures
}

const [adk, bridge] = [await measureAdk(), await measureBridge()]
const decisions = await measureDecisions('socket', { folder, baseUrl: emulator.baseUrl })
const rows = [
  {
    what: `memory of an idle live chat, of ${CHATS}`,
    unit: 'KiB',
    goal: 1.5,
    alone: adk.bytesPerChat / 1_024,
    ours: bridge.bytesPerChat / 1_024,
  },
  {
    what: 'CPU of a live event',
    unit: 'µs',
    goal: 1.5,
    alone: adk.microsecondsPerEvent,
    ours: bridge.microsecondsPerEvent,
  },
  {
    what: '`decide` to the start of the tool, median',
    unit: 'ms',
    goal: 2,
    alone: decisions.floor.ms,
    ours: decisions.bridge.ms,
  },
  {
    what: 'CPU of the server within that',
    unit: 'µs',
    goal: 2,
    alone: decisions.floor.cpuUs,
    ours: decisions.bridge.cpuUs,
  },
]
console.log('| | alone | the bridge | ratio | goal |\n| --- | --- | --- | --- | --- |')
for (const { what, unit, goal, alone, ours } of rows) {
  const figures = [`${alone.toFixed(2)} ${unit}`, `${ours.toFixed(2)} ${unit}`]
  console.log(
    `| ${[what, ...figures, `${(ours / alone).toFixed(2)} ×`, `≤ ${goal} ×`].join(' | ')} |`,
  )
}
await emulator.close()
await rm(folder, { recursive: true, force: true })
process.exit(0)
