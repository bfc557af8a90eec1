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

/** What must hold however long a turn or a chat gets, and whatever its reader does. */
export interface Endurance {
  /** CPU per chunk of a long turn, by that of a short one. */
  readonly longTurn: Spread
  /** The first chunk in a chat with much history, by that in a new chat. */
  readonly longHistory: Spread
  readonly stalledReader: StalledReader
  /** From the moment a client vanished to the end of its model, in ms. */
  readonly vanishedClient: Spread
}

interface StalledReader {
  readonly heapMb: number
  /** Tokens the model was let produce, of those it would have. */
  readonly produced: number
  readonly of: number
}

export async function measureEndurance(row: Row, sizes: Sizes): Promise<Endurance> {
  return {
    longTurn: await compareTurns(row, sizes),
    longHistory: await compareHistories(row, sizes),
    stalledReader: await stallReader(row.server),
    vanishedClient: await vanish(row.server, sizes.vanishing),
  }
}

async function compareTurns(row: Row, sizes: Sizes): Promise<Spread> {
  const { repeats, longTurn, shortTurn } = sizes
  // A new process compiles as it goes, and the first turn would pay for all that follow.
  await flood(row, 1, longTurn)
  const ratios: number[] = []
  for (let index = 0; index < repeats; index += 1) {
    const long = await flood(row, 1, longTurn)
    const shorts: number[] = []
    for (let said = 0; said < longTurn; said += shortTurn) {
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
  // ADK stores two events per turn: what was asked and what was answered.
  for (let events = 0; events < history; events += 2) await client.ask({ tokens: 1 }, chat)
  const ratios: number[] = []
  for (let index = 0; index < repeats; index += 1) {
    const fresh: number[] = []
    const long: number[] = []
    for (let asked = 0; asked < historyRequests; asked += 1) {
      fresh.push((await client.ask({ tokens: 1 })).firstChunkMs)
      long.push((await client.ask({ tokens: 1 }, chat)).firstChunkMs)
    }
    ratios.push(median(long) / median(fresh))
  }
  client.close()
  return spread(ratios)
}

/** A client that sends a request and then reads nothing. */
async function stallReader(server: ServerProcess): Promise<StalledReader> {
  const flooding = { tokens: 60_000, length: 1_024 }
  const before = await server.read({ collect: true })
  const client = new Client(server.port)
  await client.open(flooding)
  await untilQuiet(server)
  const after = await server.read({ collect: true })
  client.close()
  return {
    heapMb: (after.heapBytes - before.heapBytes) / 1_048_576,
    produced: after.tokens - before.tokens,
    of: flooding.tokens,
  }
}

/** Waits until no model has produced anything for a second: paused, or done. */
async function untilQuiet(server: ServerProcess): Promise<void> {
  let { tokens } = await server.read()
  for (let quietMs = 0; quietMs < 1_000; quietMs += 100) {
    await delay(100)
    const now = (await server.read()).tokens
    if (now !== tokens) quietMs = -100
    tokens = now
  }
}

/** Clients vanish in turn while the model talks and while it is silent. */
async function vanish(server: ServerProcess, trials: number): Promise<Spread> {
  const times: number[] = []
  for (let trial = 0; trial < trials; trial += 1) {
    const { ended } = await server.read()
    const client = new Client(server.port)
    await (trial % 2 === 0
      ? client.begin({ tokens: 20, ending: 'hold' })
      : client.open({ tokens: 1_000_000 }))
    const vanishedMs = monotonicMs()
    client.close()
    let now = await server.read()
    while (now.ended === ended) {
      await delay(1)
      now = await server.read()
    }
    times.push(now.lastEndMs - vanishedMs)
  }
  return spread(times)
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
