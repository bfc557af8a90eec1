import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

import { delayBefore, sleep } from '../../shared/backoff.ts'
import type { Deferred } from '../../shared/async.ts'
import { defer } from '../../shared/async.ts'
import type { Hint, HintListener } from '../../relay/relay.ts'
import type { ListenClient } from './database.ts'

/** The channel of all hints. NOTIFY reaches every connection of a database, whatever its schema. */
export const CHANNEL = 'adk_stream_protocol'

export interface HintConnectionOptions {
  readonly createClient: () => ListenClient
  readonly listener: HintListener
  /** Sends a hint with this id over another connection. */
  readonly probe: (id: string) => Promise<void>
  readonly timing?: Partial<ListenTiming>
}

export interface ListenTiming {
  /** How often a probe is sent. A connection that dies silently reports no error. */
  readonly probeMs: number
  /** How long a probe may take. */
  readonly timeoutMs: number
}

const CLOSE_MS = 1_000
const TIMING: ListenTiming = { probeMs: 10_000, timeoutMs: 3_000 }
const BACKOFF = { firstMs: 100, maxMs: 30_000, attempts: Infinity }

/**
 * The connection that listens for hints. It connects again when it is lost. A probe, a hint that this server sends to itself over
 * another connection, shows whether hints arrive: a proxy may drop LISTEN, and a connection may die without an error.
 */
export class HintConnection {
  readonly #options: HintConnectionOptions
  readonly #timing: ListenTiming
  readonly #closed = new AbortController()
  readonly #probes = new Map<string, Deferred<boolean>>()
  #client: ListenClient | undefined
  #state: 'listening' | 'polling' | undefined
  #hasWarned = false
  #running: Promise<void> | undefined

  constructor(options: HintConnectionOptions) {
    this.#options = options
    this.#timing = { ...TIMING, ...options.timing }
  }

  /** Resolves when it is known whether hints arrive. */
  async start(): Promise<void> {
    const known = defer()
    this.#running = this.#run(() => known.resolve())
    await known.promise
  }

  async close(): Promise<void> {
    this.#closed.abort()
    const client = this.#client
    this.#client = undefined
    void client?.end().catch(ignore)
    // A connection to a server that has vanished may never answer.
    await Promise.race([this.#running, delay(CLOSE_MS, undefined, { ref: false })])
  }

  async #run(onKnown: () => void): Promise<void> {
    const { signal } = this.#closed
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      const lost = new AbortController()
      const isListening = await this.#connect(lost)
      this.#setState(isListening ? 'listening' : 'polling')
      onKnown()
      if (isListening) {
        attempt = 0
        await this.#watch(lost.signal)
      }
      void this.#client?.end().catch(ignore)
      this.#client = undefined
      if (!signal.aborted) await sleep(delayBefore(attempt, BACKOFF), signal)
    }
  }

  async #connect(lost: AbortController): Promise<boolean> {
    const client = this.#options.createClient()
    const onLost = (): void => lost.abort()
    client.on('error', onLost)
    client.on('end', onLost)
    client.on('notification', ({ payload }) => this.#receive(payload))
    this.#client = client
    try {
      await client.connect()
      await client.query(`LISTEN "${CHANNEL}"`)
    } catch {
      // The database cannot be reached. Requests report that.
      return false
    }
    const arrives = await this.#sendProbe(lost.signal)
    if (!arrives && !lost.signal.aborted && !this.#closed.signal.aborted) this.#warn()
    // What was sent before LISTEN did not arrive.
    if (arrives) this.#options.listener.onGap()
    return arrives
  }

  /** Resolves when the connection is lost. */
  async #watch(lost: AbortSignal): Promise<void> {
    const ended = AbortSignal.any([lost, this.#closed.signal])
    while (!ended.aborted) {
      await sleep(this.#timing.probeMs, ended)
      if (!ended.aborted && !(await this.#sendProbe(ended))) return
    }
  }

  async #sendProbe(lost: AbortSignal): Promise<boolean> {
    const id = randomUUID()
    const arrived = defer<boolean>()
    const timer = setTimeout(() => arrived.resolve(false), this.#timing.timeoutMs)
    const onLost = (): void => arrived.resolve(false)
    lost.addEventListener('abort', onLost)
    this.#probes.set(id, arrived)
    try {
      await this.#options.probe(id)
      return await arrived.promise
    } catch {
      // The database cannot be reached. Requests report that.
      return false
    } finally {
      clearTimeout(timer)
      lost.removeEventListener('abort', onLost)
      this.#probes.delete(id)
    }
  }

  #receive(payload = ''): void {
    const hint = readHint(payload)
    if (hint?.probe === undefined) {
      if (hint) this.#options.listener.onHint(hint)
    } else this.#probes.get(hint.probe)?.resolve(true)
  }

  #setState(state: 'listening' | 'polling'): void {
    if (state === this.#state || this.#closed.signal.aborted) return
    this.#state = state
    this.#options.listener.onState(state)
  }

  #warn(): void {
    if (this.#hasWarned) return
    this.#hasWarned = true
    this.#options.listener.onWarning(new Error(NOT_LISTENING))
  }
}

const NOT_LISTENING =
  'LISTEN does not work on this connection to PostgreSQL, so changes of other servers are read at an interval. PgBouncer needs session pooling for this connection: give the store a direct connection.'

function ignore(): void {}

/** Other programs may use the channel. */
function readHint(payload: string): (Hint & { readonly probe?: string }) | undefined {
  try {
    const hint: unknown = JSON.parse(payload)
    return typeof hint === 'object' && hint !== null ? hint : undefined
  } catch {
    return undefined
  }
}

/** The number of ids in one hint. A payload may have 8,000 bytes. */
const MAX_IDS = 150

/** Returns a hint as payloads. Returns none for a hint that says nothing. */
export function splitHint({ turns = [], ...rest }: Hint): string[] {
  const pages: Hint[] = []
  for (let start = 0; start < turns.length; start += MAX_IDS)
    pages.push({ turns: turns.slice(start, start + MAX_IDS) })
  if (Object.keys(rest).length > 0) pages[0] = { ...pages[0], ...rest }
  return pages.map((page) => JSON.stringify(page))
}
