import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

import { startEmulator } from 'gemini-emulator'

import { startPostgres } from '../../../../../test/support/postgres-server.ts'
import { openPostgresStore } from '../../../src/store/postgres/index.ts'
import { openSqliteStore, type Store } from '../../../src/store/index.ts'
import { makeFolder } from '../../faults/support/folder.ts'
import { Person, readEffects } from '../../faults/support/person.ts'
import { startBusyProcesses } from '../../support/busy-processes.ts'
import type { ChatMessage } from '../../support/chat-probe.ts'
import { ChaosClient, replyTo, textOf } from './chaos-client.ts'
import { ChaosServers } from './chaos-servers.ts'
import { checkChaos } from './check-chaos.ts'
import { expectedText } from './check-runs.ts'
import { type ChaosHistory, emptyHistory, type FaultKind } from './history.ts'
import type { Plant } from '../../faults/support/plants.ts'
import { PagePerson } from './page-person.ts'
import { Random } from './random.ts'
import { Utterances } from './utterances.ts'

export interface ChaosOptions {
  readonly seed: number
  readonly ms: number
  /** Default: as many as fit into the time. */
  readonly rounds?: number
  /** The time after which the histories are checked and new chats begin. */
  readonly roundMs: number
  readonly leaseMs: number
  /** The database of the servers. Default: PostgreSQL. */
  readonly store?: 'postgres' | 'sqlite'
  readonly servers: number
  readonly clients: number
  /** People with the client library in one or two tabs. Default 0. */
  readonly pages?: number
  /**
   * Whether the sockets of pages have live sessions. With `some`, they have, and every other person only has tabs over HTTP. Default
   * false.
   */
  readonly live?: boolean | 'some'
  /** Whether people with pages also speak. Needs `live`. Default false. */
  readonly voice?: boolean
  /** How many processes keep the machine busy. Default 0. */
  readonly pressure?: number
  /** A fault of the servers that the run should find. Default: none. */
  readonly plant?: Plant | undefined
  /** The pause between two faults. */
  readonly everyMs: readonly [least: number, most: number]
  /** The faults of each round, in this order and again from the start. An empty list: none. Default: at random. */
  readonly faults?: readonly (readonly FaultKind[])[]
  /** Where the history of a violation is written. */
  readonly folder: string
  /** Whether the histories of all rounds are written. Default: only that of a violation. */
  readonly keepHistory?: boolean
  readonly print: (line: string) => void
}

interface ChaosResult {
  readonly violations: readonly string[]
  readonly tally: ChaosTally
  /** The file with the history of the round that has a violation. What the servers logged is beside it. */
  readonly file?: string
}

interface ChaosTally {
  rounds: number
  turns: number
  /** Replies that a fault or a client interrupted. */
  partial: number
  /** Messages of which the client did not learn whether they were taken. */
  notSent: number
  approvals: number
  decisions: number
  effects: number
  readonly ends: Record<string, number>
  readonly faults: Record<string, number>
}

/** How long the work of a round may take after its last fault. */
const DRAIN_MS = 60_000

/** Runs servers, clients and faults, and checks what they leave behind. */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const { seed, ms, roundMs, servers: count, leaseMs, print } = options
  const random = new Random(seed)
  const tally = emptyTally()
  let history = emptyHistory(leaseMs)
  const postgres = options.store === 'sqlite' ? undefined : await startPostgres()
  const endPressure = startBusyProcesses(options.pressure ?? 0)
  try {
    await using folder = await makeFolder()
    const busyTimeoutMs = DRAIN_MS
    await using store = postgres
      ? await openPostgresStore({ connectionString: postgres.url, schema: 'public', busyTimeoutMs })
      : await openSqliteStore({ path: folder.database, busyTimeoutMs })
    const utterances = options.voice === true ? new Utterances() : undefined
    await using emulator = options.live ? await openEmulator(utterances) : undefined
    const modelUrl = emulator?.baseUrl
    const start = {
      folder,
      postgres,
      count,
      leaseMs,
      modelUrl,
      isSpoken: utterances !== undefined,
      plant: options.plant,
      random: random.fork(),
      history: () => history,
    }
    await using servers = await ChaosServers.start(start)
    const until = Date.now() + ms
    let seq = 0
    while (Date.now() < until && tally.rounds < (options.rounds ?? Infinity)) {
      history = emptyHistory(leaseMs)
      tally.rounds += 1
      const roundUntil = Math.min(until, Date.now() + roundMs)
      const round = tally.rounds
      const work = async (): Promise<void> => {
        await runRound({ options, random, servers, history, round, until: roundUntil, utterances })
        await drain(store, history)
        seq = await collect(history, { store, servers, effects: folder.effects, after: seq })
      }
      // A server that has ended by itself does not return. What clients see of that says nothing more.
      const isWhole = await Promise.race([work().then(() => true), servers.lost.then(() => false)])
      history.problems.push(...(utterances?.repeated ?? []).map((frame) => `heard twice: ${frame}`))
      const violations = isWhole ? checkChaos(history) : [...history.problems]
      addTo(tally, history)
      print(`${describe(tally)}, ${violations.length} violations`)
      if (violations.length === 0 && !options.keepHistory) continue
      const file = path.join(options.folder, `chaos-${seed}-${round}.json`)
      await write(file, { history, violations, servers })
      if (violations.length > 0) return { violations, tally, file }
    }
    const fault = (await store.approvals.verifyAudit?.())?.fault
    return { violations: fault ? [`the audit record: ${JSON.stringify(fault)}`] : [], tally }
  } finally {
    endPressure()
    await postgres?.stop()
  }
}

async function openEmulator(
  utterances: Utterances | undefined,
): Promise<{ readonly baseUrl: string } & AsyncDisposable> {
  const emulator = await startEmulator(utterances && { transcribe: utterances.transcribe })
  return { baseUrl: emulator.baseUrl, [Symbol.asyncDispose]: () => emulator.close() }
}

interface Round {
  readonly options: ChaosOptions
  readonly random: Random
  readonly servers: ChaosServers
  readonly history: ChaosHistory
  readonly until: number
  readonly round: number
  readonly utterances: Utterances | undefined
}

/** Runs clients and faults until the time is over, and then lets the clients finish. */
async function runRound(run: Round): Promise<void> {
  const { options, random, servers, history, until, round, utterances } = run
  const start = (Client: typeof ChaosClient | typeof PagePerson, name: string, count: number) =>
    Array.from({ length: count }, (_, index) =>
      new Client({
        name: `round-${round}.${name}-${index + 1}`,
        history,
        random: random.fork(),
        urls: () => servers.urls,
        isHttp: options.live === 'some' && index % 2 === 1,
        ...(utterances && { utterances }),
      }).run(until),
    )
  const clients = start(ChaosClient, 'client', options.clients)
  const pages = start(PagePerson, 'page', options.pages ?? 0)
  const [least, most] = options.everyMs
  const own = random.fork()
  const applied: Promise<void>[] = []
  for (let index = 0; Date.now() < until; index += 1) {
    await delay(own.between(least, most))
    const faults = options.faults?.[(round - 1) % options.faults.length]
    const kind = faults ? faults[index % faults.length] : own.pick<FaultKind>(servers.faults)
    const fault = kind && servers.apply(kind)
    // A fault that takes long does not keep others from happening.
    if (fault)
      applied.push(fault.catch((error: unknown) => void history.problems.push(String(error))))
  }
  await Promise.all(applied)
  await servers.untilCalm()
  await Promise.all([...clients, ...pages])
}

/** Waits until nothing is left to do. */
async function drain(store: Store, history: ChaosHistory): Promise<void> {
  const until = Date.now() + DRAIN_MS
  const states = ['approved', 'executing'] as const
  while ((await store.approvals.list({ states, limit: 1 })).length > 0) {
    if (Date.now() > until) return void history.problems.push('approved calls are left')
    await delay(100)
  }
}

interface Collected {
  readonly store: Store
  readonly servers: ChaosServers
  /** The file with the effects of the tools. */
  readonly effects: string
  /** The newest audit entry of earlier rounds. */
  readonly after: number
}

/** Reads what the servers have stored. Returns the number of the newest audit entry. */
async function collect(
  history: ChaosHistory,
  { store, servers, effects, after }: Collected,
): Promise<number> {
  history.effects = readEffects(effects)
  const audit = []
  for await (const record of store.approvals.audit({ after })) audit.push(record)
  const ids = new Set(history.turns.map(({ chatId }) => chatId))
  // An approval of an earlier round may expire.
  history.audit = audit.filter(({ chat }) => ids.has(chat.chatId))
  const chats = new Map<string, ChatMessage[][]>()
  for (const chatId of ids) {
    const user = chatId.slice(0, chatId.lastIndexOf('-'))
    const people = servers.urls.map((url) => new Person(url, { user, chatId }))
    chats.set(
      chatId,
      await Promise.all(people.map((person) => readWhenIdle(person, history.problems))),
    )
  }
  history.chats = chats
  const known = new Set(ids)
  history.effects = history.effects.filter(({ chatId }) => known.has(chatId))
  return audit.at(-1)?.seq ?? after
}

/** Reads a chat when no turn of it runs: a page would read the message of a running turn from its stream. */
async function readWhenIdle(person: Person, problems: string[]): Promise<ChatMessage[]> {
  const until = Date.now() + DRAIN_MS
  for (;;) {
    const { messages, running } = await person.conversation()
    if (!running) return messages
    if (Date.now() > until) {
      problems.push(`a turn of ${person.chatId} does not end`)
      return messages
    }
    await delay(100)
  }
}

function emptyTally(): ChaosTally {
  const counts = { rounds: 0, turns: 0, partial: 0, notSent: 0 }
  return { ...counts, approvals: 0, decisions: 0, effects: 0, ends: {}, faults: {} }
}

function addTo(tally: ChaosTally, history: ChaosHistory): void {
  tally.turns += history.turns.length
  for (const turn of history.turns) {
    const { chatId, userMessageId, fault } = turn
    if (fault === 'not sent') tally.notSent += 1
    const reply = replyTo(history.chats.get(chatId)?.[0] ?? [], userMessageId)
    if (fault === undefined && (!reply || textOf(reply) !== expectedText(turn, reply)))
      tally.partial += 1
  }
  tally.decisions += history.decisions.length
  tally.effects += history.effects.length
  const ends = new Map(history.audit.map(({ approvalId, event }) => [approvalId, event.type]))
  tally.approvals += ends.size
  for (const end of ends.values()) tally.ends[end] = (tally.ends[end] ?? 0) + 1
  for (const { kind } of history.faults) tally.faults[kind] = (tally.faults[kind] ?? 0) + 1
}

function describe(tally: ChaosTally): string {
  const { turns, partial, notSent, approvals, decisions, effects, ends, faults } = tally
  return [
    `${turns} messages (${partial} interrupted or stopped, ${notSent} not sent)`,
    `${approvals} approvals (${list(ends)}), ${decisions} decisions, ${effects} payments`,
    `faults: ${list(faults)}`,
  ].join('; ')
}

function list(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')
}

/** Writes the history of a round and, if it has violations, what the servers logged about their chats. */
async function write(
  file: string,
  {
    history,
    violations,
    servers,
  }: { history: ChaosHistory; violations: readonly string[]; servers: ChaosServers },
): Promise<void> {
  await writeFile(file, serialise(history, violations))
  if (violations.length === 0) return
  const lines = servers.readLogs(findChats(violations))
  await writeFile(file.replace(/json$/, 'log'), lines.join('\n'))
}

/** Returns the chats that violations name. */
function findChats(violations: readonly string[]): ReadonlySet<string> {
  return new Set(violations.flatMap((violation) => violation.match(CHAT_ID) ?? []))
}

const CHAT_ID = /round-\d+\.[a-z]+-\d+-\d+/g

function serialise(history: ChaosHistory, violations: readonly string[]): string {
  return JSON.stringify({ violations, ...history, chats: [...history.chats] }, undefined, 1)
}
