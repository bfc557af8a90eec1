import type { AppChatRef } from '../shared/chat-ref.ts'
import { keepNewest } from '../shared/collections.ts'
import { SerialTask } from '../shared/async.ts'
import type { Turn } from '../turns/turn.ts'
import type { TurnLogLimits } from '../turns/turn-log.ts'
import { RelaySignals } from './relay-signals.ts'
import type { Hint, Relay, RelayTurn, TurnChange } from './relay.ts'
import type { AskServer, ServerRequestHandler } from './server-requests.ts'
import { onRequest, STOP_TURN } from './server-requests.ts'
import type { StopHow } from './turn-mirrors.ts'
import { TurnMirrors } from './turn-mirrors.ts'
import { TurnPublisher } from './turn-publisher.ts'

export interface TurnRelayOptions extends TurnLogLimits {
  readonly relay: Relay
  /** The name of this server. */
  readonly worker: string
  /** How long a server that does not respond still counts as alive. */
  readonly leaseMs: number
  readonly timing?: Partial<RelayTiming>
  /** Whether a client waits for turns of other servers. */
  readonly isAwaited: () => boolean
  /** A turn of another server has started or ended. */
  readonly onTurnChange: (change: TurnChange) => void
  /** Another server may have changed approvals. */
  readonly onApprovals: () => void
  /** Called after each write of turns with the age of the oldest content that it wrote, at most. */
  readonly onWritten?: (lagMs: number) => void
  /** Handles the requests of other servers, except those about published turns. */
  readonly handlers: readonly ServerRequestHandler[]
  readonly onError: (error: unknown) => void
}

/** Intervals in ms. */
export interface RelayTiming {
  /** Between two writes of the turns of this server. */
  readonly flushMs: number
  /** Between two reads while hints arrive. */
  readonly pollMs: number
  /** Between two reads while no hints arrive. */
  readonly fastPollMs: number
  /** How long the owner of a turn may take to answer. */
  readonly answerMs: number
  /** How long a copy of a turn is kept without readers. */
  readonly lingerMs: number
}

const TIMING: RelayTiming = {
  flushMs: 50,
  pollMs: 1_000,
  fastPollMs: 250,
  answerMs: 5_000,
  lingerMs: 5_000,
}

/** Hints and rows may arrive in another order than they were written. */
const OVERLAP_MS = 2_000
const MAX_SEEN = 10_000

/** This server's part in the relay: it publishes its own turns, and reads and stops those of other servers. */
export class TurnRelay {
  readonly #options: TurnRelayOptions
  readonly #timing: RelayTiming
  readonly #publisher: TurnPublisher
  readonly #mirrors: TurnMirrors
  readonly #signals: RelaySignals
  #stopListening: Promise<() => Promise<void>> | undefined
  #pollMs: number
  #timer: NodeJS.Timeout | undefined
  #polling: Promise<unknown> | undefined
  #renewedAt = 0
  /** Turn changes that were reported: turn → whether its end was reported. */
  readonly #seen = new Map<string, boolean>()
  #changesAt = performance.now()
  readonly #watched = new SerialTask(() => this.#readWatched())
  readonly #changes = new SerialTask(() => this.#readChanges())
  /** Changes of approvals in short succession share a hint. */
  readonly #approvalHint = new SerialTask(async () => {
    const { relay, onError } = this.#options
    if (!this.#isClosed) await relay.notify({ approvals: true }).catch(onError)
  })
  #isClosed = false

  constructor(options: TurnRelayOptions) {
    this.#options = options
    this.#timing = { ...TIMING, ...options.timing }
    this.#pollMs = this.#timing.pollMs
    const { relay, worker, onWritten, onError } = options
    const { flushMs, lingerMs, answerMs } = this.#timing
    this.#publisher = new TurnPublisher({ relay, owner: worker, flushMs, onWritten, onError })
    this.#mirrors = new TurnMirrors({
      ...options,
      lingerMs,
      onStop: (turn, how) => void this.#stop(turn, how).catch(onError),
    })
    this.#signals = new RelaySignals({
      relay,
      worker,
      timeoutMs: answerMs,
      handlers: [...options.handlers, onRequest(STOP_TURN, (body) => this.#stopHere(body))],
      onError,
    })
  }

  /** Starts to listen and to poll. Resolves when hints arrive, or when it is known that they do not. */
  async start(): Promise<void> {
    const { relay, onApprovals, onError } = this.#options
    this.#schedule()
    this.#stopListening = relay.listen({
      onHint: (hint) => this.#onHint(hint),
      onGap: () => {
        void this.#poll()
        onApprovals()
      },
      onState: (state) => this.#setState(state),
      onWarning: onError,
    })
    await this.#stopListening
  }

  /** Publishes a turn of this server. Call it before anything is written to the turn. */
  publish(chat: AppChatRef, turn: Turn): void {
    this.#publisher.publish(chat, turn)
  }

  /** Returns the running turn of a chat on another server. */
  async find(chat: AppChatRef): Promise<RelayTurn | undefined> {
    const found = await this.#options.relay.find(chat)
    return found?.owner === this.#options.worker ? undefined : found
  }

  /** Returns a copy of the running turn of a chat on another server. */
  open(chat: AppChatRef): Promise<Turn | undefined> {
    return this.#mirrors.open(chat)
  }

  /** Reads which turns of this server have readers on other ones. Some may have left just before. */
  readWatched(): Promise<void> {
    return this.#watched.run()
  }

  /** Asks another server. */
  get ask(): AskServer {
    return this.#signals.ask
  }

  /** Notifies the other servers that approvals have changed. */
  notifyApprovals(): void {
    void this.#approvalHint.run()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#publisher.close()
    await this.#mirrors.close()
    await this.#polling
    const stopListening = await this.#stopListening
    await stopListening?.()
  }

  #stop({ owner, turnId }: RelayTurn, how: StopHow): Promise<boolean> {
    return this.ask(owner, STOP_TURN, { turnId, ...how })
  }

  async #stopHere({ turnId, ifUnwatched }: StopHow & Pick<RelayTurn, 'turnId'>): Promise<boolean> {
    const turn = this.#publisher.find(turnId)
    // The turn has ended. The other server reads that soon.
    if (!turn) return true
    if (ifUnwatched) await this.readWatched()
    if (ifUnwatched && !(await turn.becomesUnwatched())) return false
    turn.stop()
    await turn.settled
    return true
  }

  #onHint({ turns = [], watched = [], signals = [], changes, approvals }: Hint): void {
    const { worker, onApprovals } = this.#options
    if (turns.length > 0) void this.#mirrors.read(turns)
    if (watched.includes(worker)) void this.#watched.run()
    if (signals.includes(worker)) void this.#signals.take()
    if (changes) void this.#changes.run()
    if (approvals) onApprovals()
  }

  #setState(state: 'listening' | 'polling'): void {
    const { pollMs, fastPollMs } = this.#timing
    this.#pollMs = state === 'listening' ? pollMs : fastPollMs
    this.#schedule()
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    if (this.#isClosed) return
    this.#timer = setTimeout(() => {
      this.#polling = this.#poll().finally(() => this.#schedule())
    }, this.#pollMs)
    this.#timer.unref()
  }

  /** Reads everything that a lost hint may have announced. */
  async #poll(): Promise<void> {
    const { leaseMs } = this.#options
    const now = performance.now()
    const renews = now - this.#renewedAt > leaseMs / 3
    if (renews) this.#renewedAt = now
    await Promise.all([
      this.#signals.take(),
      this.#publisher.busy && this.#watched.run(),
      this.#mirrors.read(),
      renews && this.#mirrors.renew(),
      this.#changes.run(),
    ])
  }

  async #readWatched(): Promise<void> {
    const { relay, worker, leaseMs, onError } = this.#options
    try {
      await this.#publisher.setWatched(await relay.watched(worker, leaseMs))
    } catch (error) {
      onError(error)
    }
  }

  async #readChanges(): Promise<void> {
    const { relay, worker, isAwaited, onTurnChange, onError } = this.#options
    const now = performance.now()
    const sinceMs = now - this.#changesAt + OVERLAP_MS
    if (!isAwaited()) {
      this.#changesAt = now
      return
    }
    try {
      for (const change of await relay.changes(sinceMs)) {
        if (change.owner === worker) continue
        const { isStart, isEnd } = this.#note(change)
        if (isStart) onTurnChange({ ...change, ended: false })
        if (isEnd) onTurnChange(change)
      }
      this.#changesAt = now
    } catch (error) {
      onError(error)
    }
  }

  /** Records a change. Returns what was not known of it. */
  #note({ turnId, ended }: TurnChange): { readonly isStart: boolean; readonly isEnd: boolean } {
    const known = this.#seen.get(turnId)
    this.#seen.delete(turnId)
    this.#seen.set(turnId, ended || known === true)
    keepNewest(this.#seen, MAX_SEEN)
    return { isStart: known === undefined, isEnd: ended && known !== true }
  }
}
