import type { AppChatRef } from '../shared/chat-ref.ts'
import { SerialTask } from '../shared/async.ts'
import type { TurnLogLimits } from '../turns/turn-log.ts'
import { Turn } from '../turns/turn.ts'
import type { Relay, RelayTurn, TurnRows } from './relay.ts'
import { appendLines } from './relay.ts'

interface TurnMirrorsOptions extends TurnLogLimits {
  readonly relay: Pick<Relay, 'find' | 'read' | 'watch' | 'unwatch'>
  /** The name of this server. */
  readonly worker: string
  /** How long a copy without readers is kept. */
  readonly lingerMs: number
  /** Called when a client stops a turn that it reads here. */
  readonly onStop: (turn: RelayTurn, how: StopHow) => void
  readonly onError: (error: unknown) => void
}

/** Whether a turn is stopped only if no server reads it. */
export interface StopHow {
  readonly ifUnwatched: boolean
}

/**
 * Copies of running turns of other servers. All readers of a turn on this server share one copy. It is filled from the rows of the
 * relay, when a hint arrives and at an interval.
 */
export class TurnMirrors {
  readonly #options: TurnMirrorsOptions
  readonly #mirrors = new Map<string, Mirror>()
  readonly #changed = new Set<string>()
  readonly #reading = new SerialTask(() => this.#readChanged())

  constructor(options: TurnMirrorsOptions) {
    this.#options = options
  }

  /** Returns a copy of the running turn of a chat, or undefined if no other server runs one that can be read from its start. */
  async open(chat: AppChatRef): Promise<Turn | undefined> {
    const { relay, worker } = this.#options
    const found = await relay.find(chat)
    if (!found || found.owner === worker || !found.replayable) return undefined
    const mirror = this.#mirrors.get(found.turnId) ?? this.#create(found)
    // The record comes first: the owner then sends hints about everything that this read does not contain.
    await mirror.watch()
    await this.read([found.turnId])
    return mirror.isGone ? undefined : mirror.turn
  }

  /** Reads the new rows of turns, or of all turns. Resolves when they are read. */
  async read(turnIds: Iterable<string> = this.#mirrors.keys()): Promise<void> {
    for (const turnId of turnIds) if (this.#mirrors.has(turnId)) this.#changed.add(turnId)
    await this.#reading.run()
  }

  /** Renews the records that this server reads these turns. */
  async renew(): Promise<void> {
    const { relay, worker, onError } = this.#options
    const read = [...this.#mirrors.values()].filter(({ isWatched }) => isWatched)
    if (read.length === 0) return
    await relay
      .watch(
        worker,
        read.map(({ found }) => found),
      )
      .catch(onError)
  }

  /** Ends all copies. Their readers may resume on another server. */
  async close(): Promise<void> {
    const all = [...this.#mirrors.values()]
    for (const mirror of all) mirror.abandon()
    await Promise.all(all.map((mirror) => mirror.unwatched))
    await this.#reading.settled()
  }

  #create(found: RelayTurn): Mirror {
    const onGone = (): void => {
      this.#mirrors.delete(found.turnId)
    }
    const mirror = new Mirror(found, this.#options, onGone)
    this.#mirrors.set(found.turnId, mirror)
    return mirror
  }

  async #readChanged(): Promise<void> {
    const { relay, onError } = this.#options
    const asked = [...this.#changed].flatMap((turnId) => this.#mirrors.get(turnId) ?? [])
    this.#changed.clear()
    if (asked.length === 0) return
    try {
      const rows = await relay.read(asked.map(({ position }) => position))
      const byTurn = new Map(rows.map((row) => [row.turnId, row]))
      for (const mirror of asked) mirror.fill(byTurn.get(mirror.found.turnId))
    } catch (error) {
      // Read again with the next hint or at the next interval.
      onError(error)
    }
  }
}

/** A copy of a running turn of another server. */
class Mirror {
  readonly found: RelayTurn
  readonly turn: Turn
  readonly #options: TurnMirrorsOptions
  readonly #onGone: () => void
  #seq = 0
  #isWatched = false
  #isGone = false
  #linger: NodeJS.Timeout | undefined
  /** Resolves when the relay knows that this server does not read the turn any more. */
  unwatched: Promise<void> = Promise.resolve()

  constructor(found: RelayTurn, options: TurnMirrorsOptions, onGone: () => void) {
    this.found = found
    this.#options = options
    this.#onGone = onGone
    this.turn = new Turn(found.messageId, options, { id: found.turnId, graceMs: 0 })
    this.turn.log.onUnwatched = () => this.#unwatch()
    this.turn.signal.addEventListener('abort', () => void this.#stop(), { once: true })
    this.#startLinger()
  }

  get isWatched(): boolean {
    return this.#isWatched
  }

  get isGone(): boolean {
    return this.#isGone
  }

  get position(): { readonly turnId: string; readonly seq: number } {
    return { turnId: this.found.turnId, seq: this.#seq }
  }

  async watch(): Promise<void> {
    const { relay, worker } = this.#options
    this.#startLinger()
    if (this.#isWatched) return
    this.#isWatched = true
    await this.unwatched
    await relay.watch(worker, [this.found])
  }

  /** Appends the rows that were read. No rows: the turn was removed. */
  fill(rows: TurnRows | undefined): void {
    if (this.#isGone) return
    if (!rows?.replayable) return this.abandon()
    if (rows.seq <= this.#seq && !rows.ended) return
    this.#seq = rows.seq
    appendLines(this.turn.log, rows.lines)
    if (rows.ended) this.#leave(() => this.turn.log.end())
  }

  abandon(): void {
    this.#leave(() => this.turn.log.abandon())
  }

  /** A client has stopped the turn. If it has left before, other readers keep the turn running. */
  async #stop(): Promise<void> {
    const ifUnwatched = !this.turn.log.hasReaders
    await this.unwatched
    this.#options.onStop(this.found, { ifUnwatched })
  }

  #leave(end: () => void): void {
    if (this.#isGone) return
    this.#isGone = true
    clearTimeout(this.#linger)
    this.#onGone()
    end()
    this.#unwatch()
    this.turn.settle()
  }

  #unwatch(): void {
    if (!this.#isWatched) return
    this.#isWatched = false
    const { relay, worker, onError } = this.#options
    this.unwatched = relay.unwatch(worker, [this.found]).catch(onError)
    if (!this.#isGone) this.#startLinger()
  }

  #startLinger(): void {
    clearTimeout(this.#linger)
    this.#linger = setTimeout(() => {
      // The client may have disconnected before it read anything.
      if (!this.turn.log.hasReaders) this.abandon()
    }, this.#options.lingerMs)
    this.#linger.unref()
  }
}
