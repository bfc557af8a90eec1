import { setTimeout as delay } from 'node:timers/promises'

import Database from 'libsql'

import type { RunningPostgres } from '../../../../../test/support/postgres-server.ts'
import { bundleChildren, type Child, type Children } from '../../faults/support/children.ts'
import type { Folder } from '../../faults/support/folder.ts'
import type { Plant } from '../../faults/support/plants.ts'
import { readLog } from '../../faults/support/server-log.ts'
import { LIVE_MODEL } from '../../relay/support/live-pair.ts'
import { defer } from '../../support/agents.ts'
import { openProxy, type PostgresProxy } from '../../support/postgres-proxy.ts'
import {
  type ChaosHistory,
  DATABASE_FAULTS,
  type DatabaseFault,
  type FaultKind,
  type RecordedFault,
  SERVER_FAULTS,
  type ServerFault,
  SQLITE_FAULTS,
} from './history.ts'
import type { Random } from './random.ts'

/** How long a process takes at most until it uses the database. */
const START_MS = 10_000
/** One hour. */
const WRONG_CLOCK_MS = 3_600_000

/** One of the server processes, with its own proxy to PostgreSQL. */
interface Server {
  readonly name: string
  readonly log: string
  /** Undefined on SQLite. */
  readonly proxy: PostgresProxy | undefined
  readonly env: Readonly<Record<string, string>>
  child: Child
  /** Undefined while no process serves. */
  url: string | undefined
  /** Whether a fault of the process has not ended. */
  isFaulty: boolean
}

export interface ChaosServersOptions {
  /** Where the effects of tools are recorded, and the database if it is a file. */
  readonly folder: Folder
  /** Default: the servers use a SQLite file. */
  readonly postgres: RunningPostgres | undefined
  readonly count: number
  /** The emulator of the models, with which the servers have live sessions. Default: each server has an emulator and no live sessions. */
  readonly modelUrl?: string | undefined
  /** Whether the live model speaks. */
  readonly isSpoken: boolean
  /** A fault of the servers that the run should find. */
  readonly plant: Plant | undefined
  readonly leaseMs: number
  readonly history: () => ChaosHistory
  readonly random: Random
}

/** The server processes of a run, and their faults. */
export class ChaosServers implements AsyncDisposable {
  readonly #options: ChaosServersOptions
  readonly #children: Children
  readonly #servers: Server[] = []
  /** All processes that have not ended. */
  readonly #running = new Set<Child>()
  /** Processes that were asked to end. */
  readonly #leaving = new Set<Child>()
  /** Processes that have not served yet. */
  readonly #starting = new Set<Child>()
  readonly #lost = defer()
  #isRestarting = false
  #isClosed = false

  private constructor(options: ChaosServersOptions, children: Children) {
    this.#options = options
    this.#children = children
  }

  static async start(options: ChaosServersOptions): Promise<ChaosServers> {
    const servers = new ChaosServers(options, await bundleChildren())
    const added = Array.from({ length: options.count }, (_, index) => servers.#add(index))
    await Promise.all(added)
    return servers
  }

  /** Resolves when a server has ended by itself. */
  get lost(): Promise<void> {
    return this.#lost.promise
  }

  get urls(): string[] {
    return this.#servers.flatMap(({ url }) => url ?? [])
  }

  /** Returns what the servers have logged about these chats and about themselves, in the order of time. */
  readLogs(chatIds: ReadonlySet<string>): string[] {
    const lines = this.#servers.flatMap(({ name, log }) =>
      readLog(log).map((line) => line.replace(' ', ` ${name} `)),
    )
    const isAbout = (line: string): boolean =>
      / (?:server|error): /.test(line) || [...chatIds].some((chatId) => line.includes(chatId))
    return lines.filter(isAbout).toSorted()
  }

  /** The faults that are possible with this database. */
  get faults(): readonly FaultKind[] {
    return this.#options.postgres ? [...SERVER_FAULTS, ...DATABASE_FAULTS] : SQLITE_FAULTS
  }

  /** Applies a fault, and resolves when it is over. Does nothing if it is not possible now. */
  apply(kind: FaultKind): Promise<void> {
    return isOfDatabase(kind) ? this.#disturbDatabase(kind) : this.#disturbServer(kind)
  }

  /** Resolves when all servers serve again. */
  async untilCalm(): Promise<void> {
    while (this.#isRestarting || this.#servers.some(({ isFaulty }) => isFaulty)) await delay(50)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    for (const child of this.#running) child.resume()
    await Promise.all([...this.#running].map((child) => child.kill()))
    for (const { proxy } of this.#servers) await proxy?.[Symbol.asyncDispose]()
  }

  async #add(index: number): Promise<void> {
    const { postgres, leaseMs, modelUrl, isSpoken, plant, count, folder } = this.#options
    const proxy = postgres && (await openProxy(postgres.url))
    const name = `server-${index + 1}`
    const log = `${folder.effects}.${name}.log`
    const env = {
      LOG_FILE: log,
      ...(proxy && { DATABASE_URL: proxy.url }),
      LEASE_MS: String(leaseMs),
      GRACE_MS: '60000',
      // As in production: after this time, a request fails.
      BUSY_TIMEOUT_MS: '5000',
      TOOL_MS: '100',
      // So that faults fall into running payments.
      LONG_TOOL_MS: '2000-5000',
      ...(plant !== undefined && { PLANT: plant }),
      CHAOS_TOOLS: 'yes',
      REPORT_STALLS: String(leaseMs / 4),
      ...(modelUrl !== undefined && { MODEL_URL: modelUrl, LIVE_MODEL }),
      ...(isSpoken && { LIVE_SPOKEN: 'yes' }),
      // The last one of several has a wrong clock.
      ...(index > 0 && index === count - 1 && { CLOCK_OFFSET_MS: String(WRONG_CLOCK_MS) }),
    }
    const child = this.#start(name, env)
    const server: Server = { name, log, proxy, env, child, url: undefined, isFaulty: false }
    this.#servers.push(server)
    await this.#serve(server)
  }

  /** Lets the process of a server serve. One that cannot start because the database is away is started again, as in a deployment. */
  async #serve(server: Server): Promise<void> {
    for (;;) {
      const { child } = server
      try {
        server.url = await child.serve()
        this.#starting.delete(child)
        return
      } catch (error) {
        if (this.#isClosed || !this.#isDatabaseAway()) throw error
      }
      await delay(500)
      server.child = this.#start(server.name, server.env)
    }
  }

  /** Whether the database is away, or was in the last seconds. */
  #isDatabaseAway(): boolean {
    const { faults } = this.#options.history()
    const before = Date.now() - START_MS
    return faults.some(({ kind, to }) => kind !== 'stall' && isOfDatabase(kind) && to > before)
  }

  #start(name: string, env: Readonly<Record<string, string>>): Child {
    const { history, folder } = this.#options
    const child = this.#children.start(folder, name, env)
    this.#running.add(child)
    this.#starting.add(child)
    child.onLine = (line) => {
      if (!line.startsWith('stalled ')) return
      const to = Date.now()
      const ms = Number(line.split(' ')[1])
      history().faults.push({ kind: 'stall', server: name, from: to - ms, to })
    }
    void this.#watch(child, name)
    return child
  }

  /** Reports a process that ends by itself. */
  async #watch(child: Child, name: string): Promise<void> {
    const how = await child.ended
    this.#running.delete(child)
    if (this.#isClosed || how === 'SIGKILL' || (how === 0 && this.#leaving.has(child))) return
    if (this.#starting.delete(child) && this.#isDatabaseAway()) return
    this.#options.history().problems.push(`${name} ended by itself: ${how}`)
    this.#lost.resolve()
  }

  async #disturbServer(kind: ServerFault): Promise<void> {
    const { random } = this.#options
    const well = this.#servers.filter(({ isFaulty }) => !isFaulty)
    // If there are several, one keeps running, so that clients can continue.
    if (well.length < Math.min(2, this.#options.count)) return
    const server = random.pick(well)
    server.isFaulty = true
    const end = this.#record(kind, server.name)
    try {
      await this.#disturb(kind, server)
    } finally {
      end()
      server.isFaulty = false
    }
  }

  async #disturb(kind: ServerFault, server: Server): Promise<void> {
    const { random, leaseMs } = this.#options
    switch (kind) {
      case 'kill':
        server.url = undefined
        await server.child.kill()
        await delay(random.between(0, 1_000))
        server.child = this.#start(server.name, server.env)
        await this.#serve(server)
        return
      case 'terminate': {
        // As in a rolling deployment: the new process serves before the old one leaves.
        const old = server.child
        server.child = this.#start(server.name, server.env)
        await this.#serve(server)
        this.#leaving.add(old)
        await old.terminate()
        this.#leaving.delete(old)
        return
      }
      case 'pause':
        server.child.pause()
        await delay(leaseMs * (1.25 + random.next() / 2))
        server.child.resume()
        return
      case 'lose-answers':
        server.proxy?.dropAnswers()
        await delay(random.between(50, 500))
        server.proxy?.cut()
        return
      case 'drop-all':
        server.proxy?.dropAll()
        await delay(random.between(200, 1_500))
        server.proxy?.cut()
        return
      case 'cut':
        server.proxy?.cut()
    }
  }

  async #disturbDatabase(kind: DatabaseFault): Promise<void> {
    if (this.#isRestarting) return
    this.#isRestarting = true
    const { postgres, random, leaseMs } = this.#options
    const end = this.#record(kind)
    try {
      switch (kind) {
        case 'lock':
          await this.#lockFile(random.between(100, 1.5 * leaseMs))
          break
        case 'end-connections':
          for (const { proxy } of this.#servers) proxy?.cut()
          break
        case 'away': {
          for (const { proxy } of this.#servers) proxy?.goAway()
          await delay(1.5 * leaseMs)
          const returned = this.#servers.map(async ({ proxy }) => {
            await delay(random.between(0, leaseMs / 4))
            proxy?.comeBack()
          })
          await Promise.all(returned)
          break
        }
        case 'restart-fast':
          await postgres?.restart('fast', random.between(0, 500))
          break
        case 'restart-immediate':
          await postgres?.restart('immediate', random.between(0, 500))
      }
    } finally {
      end()
      this.#isRestarting = false
    }
  }

  /** Locks the SQLite file, as a program does that makes a copy of it. */
  async #lockFile(ms: number): Promise<void> {
    const database = new Database(this.#options.folder.database, { timeout: 0 })
    try {
      while (!tryLock(database)) await delay(5)
      await delay(ms)
      database.exec('ROLLBACK')
    } finally {
      database.close()
    }
  }

  #record(kind: FaultKind, server?: string): () => void {
    const from = Date.now()
    const fault: RecordedFault = { kind, ...(server !== undefined && { server }), from, to: from }
    // Until it is over, it may have any consequence.
    fault.to = Infinity
    this.#options.history().faults.push(fault)
    return () => {
      fault.to = Date.now()
    }
  }
}

function isOfDatabase(kind: FaultKind): kind is DatabaseFault {
  return kind === 'lock' || DATABASE_FAULTS.some((known) => known === kind)
}

/** Returns false if another process writes at the moment. */
function tryLock(database: Database.Database): boolean {
  try {
    database.exec('BEGIN IMMEDIATE')
    return true
  } catch {
    return false
  }
}
