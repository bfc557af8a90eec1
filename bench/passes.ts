import type { Client } from './load.ts'
import { openClients, WIRES } from './load.ts'
import { type RowName, ServerProcess } from './server-process.ts'
import { MOST_STREAMS, type Sizes } from './sizes.ts'
import { median } from './statistics.ts'

/** One server under load, with its clients. */
export interface Row {
  readonly name: RowName
  readonly server: ServerProcess
  readonly clients: readonly Client[]
}

/** The figures of a row in one pass. */
export interface Sample {
  /** CPU time of the server per 1,000 chunks, in ms: with one stream, and with many concurrent ones. */
  readonly cpuAlone: number
  readonly cpuCrowd: number
  /** Chunks per second. */
  readonly rateAlone: number
  readonly rateCrowd: number
  /** The time from a request in a new chat to its first text, in ms: the median of sequential requests. */
  readonly firstChunk: number
  /** The time from requests in new chats at the same moment to the first text of the last one, in ms: the median of several crowds. */
  readonly firstOfCrowd: number
  /** Heap of the server per stream during a reply, in KB. */
  readonly heap: number
}

export type Pass = Readonly<Record<RowName, Sample>>

export async function openRow(name: RowName): Promise<Row> {
  const server = await ServerProcess.start(name)
  return { name, server, clients: await openClients(server.port, MOST_STREAMS, wireOf(name)) }
}

function wireOf(name: RowName): (typeof WIRES)[keyof typeof WIRES] {
  return WIRES[name === 'G' ? 'ag-ui' : 'ui']
}

export async function closeRow({ server, clients }: Row): Promise<void> {
  for (const client of clients) client.close()
  await server.stop()
}

/**
 * Measures every row once, figure by figure, so that compared figures are measured within seconds of each other. The order of the
 * rows rotates with each pass, so that no row always follows the same one.
 */
export async function measurePass(rows: readonly Row[], sizes: Sizes, turn: number): Promise<Pass> {
  const first = turn % rows.length
  const order = [...rows.slice(first), ...rows.slice(0, first)]
  const alone = await measureEach(order, (row) => flood(row, 1, sizes.tokensAlone))
  const crowd = await measureEach(order, (row) => flood(row, sizes.crowd, sizes.tokensCrowd))
  const firstChunk = await measureEach(order, (row) => measureFirstChunk(row, sizes.requests))
  const firstOfCrowd = await measureEach(order, (row) => measureFirstOfCrowd(row, sizes))
  const heap = await measureEach(order, (row) => measureHeap(row, sizes.held))
  const sample = (name: RowName): Sample => ({
    cpuAlone: alone[name].cpu,
    cpuCrowd: crowd[name].cpu,
    rateAlone: alone[name].rate,
    rateCrowd: crowd[name].rate,
    firstChunk: firstChunk[name],
    firstOfCrowd: firstOfCrowd[name],
    heap: heap[name],
  })
  return {
    R: sample('R'),
    F: sample('F'),
    S: sample('S'),
    us: sample('us'),
    G: sample('G'),
    A: sample('A'),
    A7: sample('A7'),
  }
}

async function measureEach<Figure>(
  rows: readonly Row[],
  measure: (row: Row) => Promise<Figure>,
): Promise<Record<RowName, Figure>> {
  const figures: Partial<Record<RowName, Figure>> = {}
  for (const row of rows) figures[row.name] = await measure(row)
  // Every row has been measured.
  return figures as Record<RowName, Figure>
}

/** Reads streams at full speed. */
export async function flood(
  { server, clients }: Row,
  streams: number,
  tokens: number,
): Promise<{ cpu: number; rate: number }> {
  const before = await server.read()
  const startedAt = performance.now()
  const replies = await Promise.all(
    clients.slice(0, streams).map((client) => client.readReply({ tokens })),
  )
  const seconds = (performance.now() - startedAt) / 1_000
  const after = await server.read()
  const chunks = replies.reduce((sum, reply) => sum + reply.chunks, 0)
  return { cpu: ((after.cpuMs - before.cpuMs) / chunks) * 1_000, rate: chunks / seconds }
}

async function measureFirstChunk({ clients }: Row, requests: number): Promise<number> {
  const times: number[] = []
  for (const client of clients.slice(0, 1)) {
    for (let index = 0; index < requests; index += 1) {
      const { firstChunkMs } = await client.readReply({ tokens: 1 })
      times.push(firstChunkMs)
    }
  }
  return median(times)
}

async function measureFirstOfCrowd({ clients }: Row, { crowd, crowds }: Sizes): Promise<number> {
  const times: number[] = []
  for (let index = 0; index < crowds; index += 1) {
    const replies = await Promise.all(
      clients.slice(0, crowd).map((client) => client.readReply({ tokens: 1 })),
    )
    times.push(Math.max(...replies.map(({ firstChunkMs }) => firstChunkMs)))
  }
  return median(times)
}

/** Measures streams that are paused during the reply. */
async function measureHeap({ name, server }: Row, streams: number): Promise<number> {
  const clients = await openClients(server.port, streams, wireOf(name))
  const before = await server.read({ collect: true })
  await Promise.all(clients.map((client) => client.readTokens({ tokens: 20, ending: 'hold' })))
  const after = await server.read({ collect: true })
  for (const client of clients) client.close()
  return (after.heapBytes - before.heapBytes) / streams / 1_024
}
