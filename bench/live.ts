import { LiveClient } from './live/client.ts'
import { measureDecision } from './live/decision.ts'
import type { LiveReading } from './live/child.ts'
import { TalkingProcess } from './live/talking-process.ts'
import { median } from './statistics.ts'

const PASSES = process.argv.includes('--quick') ? 3 : 5
const CHATS = 200
const WORDS = 5_000
const DECISIONS = 100

const ANSWER = `[[say ${Array.from({ length: WORDS }, () => 'word').join(' ')}]]`

interface Figures {
  /** CPU for one event that the model sends. */
  readonly eventUs: number
  readonly chatKb: number
}

/** Opens chats, and lets the first one talk. */
interface Row {
  readonly process: TalkingProcess
  readonly open: (count: number) => Promise<void>
  readonly talk: (text: string) => Promise<void>
}

async function measure({ process, open, talk }: Row): Promise<Figures> {
  await open(20)
  await talk(ANSWER)
  const before = await process.read()
  await talk(ANSWER)
  await talk(ANSWER)
  const talked = await process.read()
  await open(CHATS)
  const opened = await process.read()
  return {
    eventUs: (1000 * grown(before, talked, 'cpuMs')) / (2 * WORDS),
    chatKb: grown(talked, opened, 'heapBytes') / CHATS / 1024,
  }
}

function grown(before: LiveReading, after: LiveReading, what: keyof LiveReading): number {
  return after[what] - before[what]
}

async function measureAdk(emulator: string): Promise<Figures> {
  await using process = await TalkingProcess.start('adk.ts', { BENCH_EMULATOR: emulator })
  return await measure({
    process,
    open: async (count) => void (await process.order({ do: 'open', count })),
    talk: async (text) => void (await process.order({ do: 'say', text })),
  })
}

async function measureBridge(emulator: string): Promise<Figures> {
  await using process = await TalkingProcess.start('bridge.ts', { BENCH_EMULATOR: emulator })
  const clients: LiveClient[] = []
  return await measure({
    process,
    open: async (count) => {
      for (let index = 0; index < count; index += 1) {
        const client = await LiveClient.open(Number(process.address))
        clients.push(client)
        await client.say(`chat-${clients.length}`, '[[say Hello]]')
      }
    },
    talk: async (text) => void (await clients[0]?.say('chat-1', text)),
  })
}

await using emulator = await TalkingProcess.start('emulator.ts')
const baseUrl = String(emulator.address)
const passes: { adk: Figures; us: Figures }[] = []
for (let pass = 0; pass < PASSES; pass += 1) {
  const adk = await measureAdk(baseUrl)
  passes.push({ adk, us: await measureBridge(baseUrl) })
}
process.env['BENCH_EMULATOR'] = baseUrl
const decision = await measureDecision(DECISIONS)

function row(name: string, unit: string, read: (figures: Figures) => number): void {
  const adk = median(passes.map((pass) => read(pass.adk)))
  const us = median(passes.map((pass) => read(pass.us)))
  const ratio = median(passes.map((pass) => read(pass.us) / read(pass.adk)))
  console.log(
    `| ${name} | ${adk.toFixed(1)} ${unit} | ${us.toFixed(1)} ${unit} | ${ratio.toFixed(2)} × | ≤ 1.5 × |`,
  )
}

console.log(
  `| ${PASSES} passes, ${WORDS} events, ${CHATS} chats | ADK runLive alone | us | us / ADK | goal |`,
)
console.log('| --- | --- | --- | --- | --- |')
row('CPU for an event of the model', 'µs', ({ eventUs }) => eventUs)
row('memory for an idle live chat, its socket included', 'KB', ({ chatKb }) => chatKb)
console.log(
  `| from the frame that decides to the start of the tool | ${decision.floor.toFixed(2)} ms (floor) | ${decision.us.toFixed(2)} ms | ${(decision.us / decision.floor).toFixed(2)} × | ≤ 2 × |`,
)
process.exit(0)
