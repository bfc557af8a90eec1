import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

import { Client } from './load.ts'
import type { Row } from './passes.ts'
import { flood } from './passes.ts'
import { monotonicMs } from './script.ts'
import type { ServerProcess } from './server-process.ts'
import type { Sizes } from './sizes.ts'
import type { Spread } from './statistics.ts'
import { median, spread } from './statistics.ts'

/** Figures for long turns, long chats, slow readers and clients that disconnect. */
export interface Endurance {
  /** The ratio of the CPU time per chunk of a long turn to that of a short one. */
  readonly longTurn: Spread
  /** The ratio of the time to the first chunk in a long chat to that in a new chat. */
  readonly longHistory: Spread
  readonly stalledReader: StalledReader
  /** The time from a client's disconnect to the end of its model call, in ms. */
  readonly disconnectedClient: Spread
}

interface StalledReader {
  readonly heapMb: number
  /** Tokens that the model produced, and those of the whole reply. */
  readonly produced: number
  readonly of: number
}

export async function measureEndurance(row: Row, sizes: Sizes): Promise<Endurance> {
  return {
    longTurn: await compareTurns(row, sizes),
    longHistory: await compareHistories(row, sizes),
    stalledReader: await measureStalledReader(row.server),
    disconnectedClient: await measureDisconnects(row.server, sizes.disconnects),
  }
}

async function compareTurns(row: Row, sizes: Sizes): Promise<Spread> {
  const { repeats, longTurn, shortTurn } = sizes
  // Warms up: a new process compiles code during its first turn.
  await flood(row, 1, longTurn)
  const ratios: number[] = []
  for (let index = 0; index < repeats; index += 1) {
    const long = await flood(row, 1, longTurn)
    const shorts: number[] = []
    for (let tokens = 0; tokens < longTurn; tokens += shortTurn) {
      const { cpu } = await flood(row, 1, shortTurn)
      shorts.push(cpu)
    }
    ratios.push(long.cpu / mean(shorts))
  }
  return spread(ratios)
}

async function compareHistories({ server }: Row, sizes: Sizes): Promise<Spread> {
  const { repeats, history, historyRequests } = sizes
  const client = new Client(server.port)
  const chat = randomUUID()
  // ADK stores two events per turn: the message and the reply.
  for (let events = 0; events < history; events += 2) await client.readReply({ tokens: 1 }, chat)
  const ratios: number[] = []
  for (let index = 0; index < repeats; index += 1) {
    const fresh: number[] = []
    const long: number[] = []
    for (let request = 0; request < historyRequests; request += 1) {
      fresh.push((await client.readReply({ tokens: 1 })).firstChunkMs)
      long.push((await client.readReply({ tokens: 1 }, chat)).firstChunkMs)
    }
    ratios.push(median(long) / median(fresh))
  }
  client.close()
  return spread(ratios)
}

/** Measures a client that sends a request and does not read the response. */
async function measureStalledReader(server: ServerProcess): Promise<StalledReader> {
  const script = { tokens: 60_000, length: 1_024 }
  const before = await server.read({ collect: true })
  const client = new Client(server.port)
  await client.open(script)
  await waitUntilQuiet(server)
  const after = await server.read({ collect: true })
  client.close()
  return {
    heapMb: (after.heapBytes - before.heapBytes) / 1_048_576,
    produced: after.tokens - before.tokens,
    of: script.tokens,
  }
}

/** Waits until no model has produced a token for a second. */
async function waitUntilQuiet(server: ServerProcess): Promise<void> {
  let { tokens } = await server.read()
  for (let quietMs = 0; quietMs < 1_000; quietMs += 100) {
    await delay(100)
    const now = (await server.read()).tokens
    if (now !== tokens) quietMs = -100
    tokens = now
  }
}

/** Clients disconnect alternately while the model pauses and while it streams. */
async function measureDisconnects(server: ServerProcess, trials: number): Promise<Spread> {
  const times: number[] = []
  for (let trial = 0; trial < trials; trial += 1) {
    const { ended } = await server.read()
    const client = new Client(server.port)
    await (trial % 2 === 0
      ? client.readTokens({ tokens: 20, ending: 'hold' })
      : client.open({ tokens: 1_000_000 }))
    const disconnectedMs = monotonicMs()
    client.close()
    let now = await server.read()
    while (now.ended === ended) {
      await delay(1)
      now = await server.read()
    }
    times.push(now.lastEndMs - disconnectedMs)
  }
  return spread(times)
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
