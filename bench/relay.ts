import { setTimeout as delay } from 'node:timers/promises'

import { BaseLlm, LlmAgent, type LlmResponse, setLogger } from '@google/adk'
import { createBridge } from 'adk-stream-protocol/server'
import { openPostgresStore } from 'adk-stream-protocol/store/postgres'

import { startPostgres } from '../test/support/postgres-server.ts'
import { scriptedAgent } from './scripted-model.ts'
import { median } from './statistics.ts'

const [TURNS, TOKENS, ROUNDS] = [20, 2_000, 8]
const [PACED_TOKENS, PACE_MS] = [400, 10]
/** The number of concurrent turns, and of those that are read on another server. */
const [MANY_TURNS, MANY_READERS] = [200, 50]

/** A model that sends the current time at a steady pace. */
class ClockModel extends BaseLlm {
  constructor() {
    super({ model: 'clock' })
  }

  override async *generateContentAsync(): AsyncGenerator<LlmResponse, void> {
    let text = ''
    for (let token = 0; token < PACED_TOKENS; token += 1) {
      await delay(PACE_MS)
      const said = `${performance.now().toFixed(3)} `
      text += said
      yield { content: { role: 'model', parts: [{ text: said }] }, partial: true }
    }
    yield { content: { role: 'model', parts: [{ text }] }, partial: false }
  }

  override connect(): Promise<never> {
    return Promise.reject(new Error('The clock has no live mode.'))
  }
}

function clockAgent(): LlmAgent {
  return new LlmAgent({ name: 'assistant', model: new ClockModel() })
}

setLogger(null)
const postgres = await startPostgres(['fsync=on', 'full_page_writes=on', 'autovacuum=on'])
try {
  await compareCpu()
  await measureDelay(1, 1)
  await measureDelay(MANY_TURNS, MANY_READERS)
} finally {
  await postgres.stop()
}

/** Measures the CPU time per 1,000 chunks with and without a relay, alternately. It includes the clients, which are in this process. */
async function compareCpu(): Promise<void> {
  const servers = {
    with: await open(scriptedAgent(), true),
    without: await open(scriptedAgent(), false),
  }
  const samples = { with: [] as number[], without: [] as number[] }
  for (let round = 0; round <= ROUNDS; round += 1) {
    // Each run also collects garbage of the one before. So each server is first as often as the other one.
    const order = ['with', 'without'] as const
    for (const how of round % 2 === 0 ? order : order.toReversed()) {
      const measured = await run(servers[how], `${how}-${round}`)
      // The first round warms up.
      if (round > 0) samples[how].push(measured)
    }
  }
  const [one, other] = [median(samples.with), median(samples.without)]
  print(
    `CPU ms per 1,000 chunks, ${TURNS} turns: with relay ${one.toFixed(1)}, without ${other.toFixed(1)}`,
  )
  print(`with / without: ${(one / other).toFixed(3)} (goal: at most 1.05)`)
  await servers.with.close()
  await servers.without.close()

  async function run(server: Server, name: string): Promise<number> {
    const before = process.cpuUsage()
    const script = JSON.stringify({ tokens: TOKENS, length: 20, ending: 'end' })
    await Promise.all(
      Array.from({ length: TURNS }, async (_, turn) =>
        drain(await server.send(`${name}-${turn}`, script)),
      ),
    )
    const { user, system } = process.cpuUsage(before)
    return (user + system) / TURNS / TOKENS
  }
}

/** Measures the time from the model to readers on another server during concurrent turns. */
async function measureDelay(turns: number, readers: number): Promise<void> {
  const [one, two] = [await open(clockAgent(), true), await open(clockAgent(), true)]
  const chats = Array.from({ length: turns }, (_, turn) => `delay-${turns}-${turn}`)
  const local = await Promise.all(chats.map((chat) => one.send(chat, 'go')))
  const drained = local.map((response) => drain(response))
  const samples: number[] = []
  const remote = chats.slice(0, readers).map(async (chat) => {
    const delays: number[] = []
    await drain(await two.resume(chat), (text) => {
      const now = performance.now()
      for (const said of text.trim().split(' ')) delays.push(now - Number(said))
    })
    // Ignores text that was sent before the reader connected.
    samples.push(...delays.slice(PACED_TOKENS / 4))
  })
  await Promise.all([...drained, ...remote])
  const sorted = samples.toSorted((first, second) => first - second)
  const at = (share: number): string =>
    (sorted[Math.floor(sorted.length * share)] ?? NaN).toFixed(0)
  print(
    `delay of a chunk for ${readers} readers on another server, ${turns} turns: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`,
  )
  await one.close()
  await two.close()
}

interface Server {
  send(chatId: string, text: string): Promise<Response>
  resume(chatId: string): Promise<Response>
  close(): Promise<void>
}

async function open(agent: LlmAgent, hasRelay: boolean): Promise<Server> {
  const store = await openPostgresStore({ connectionString: postgres.url })
  const used = hasRelay
    ? store
    : Object.assign(Object.create(store) as typeof store, { relay: undefined })
  const limits = { maxTurnsPerPrincipal: 1_000 }
  const bridge = createBridge({
    agent,
    store: used,
    limits,
    authenticate: () => ({ id: 'person' }),
  })
  const address = 'http://localhost'
  return {
    send: (id, content) =>
      bridge.fetch(
        new Request(`${address}/stream`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ id, messages: [{ role: 'user', content }] }),
        }),
      ),
    resume: (id) => bridge.fetch(new Request(`${address}/stream/${id}/stream`)),
    close: async () => {
      await bridge.close()
      await store.close()
    },
  }
}

async function drain(
  response: Response,
  onText: (text: string) => void = () => undefined,
): Promise<void> {
  if (response.status !== 200) throw new Error(`The server responded with ${response.status}.`)
  const decoder = new TextDecoder()
  for await (const bytes of response.body ?? [])
    for (const [, delta = '""'] of decoder.decode(bytes).matchAll(/"delta":("[^"]*")/g))
      onText(JSON.parse(delta) as string)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
