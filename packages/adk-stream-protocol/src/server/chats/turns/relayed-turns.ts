import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

import type { LockOwner } from '../../../locks/chat-locks.ts'
import type { Ledger } from '../../../approvals/ledger.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { Chunk } from '../../../protocol/chunk.ts'
import { serialiseChunk } from '../../../protocol/chunk.ts'
import { type PolledSignals, pollSignals } from '../../../relay/relay-signals.ts'
import type { Relay, RelayTurn } from '../../../relay/relay.ts'
import { readLine } from '../../../relay/relay.ts'
import type { AskServer } from '../../../relay/server-requests.ts'
import { onRequest, STOP_CHAT, STOP_TURN, STOP_UNWATCHED } from '../../../relay/server-requests.ts'
import type { TurnRelayOptions } from '../../../relay/turn-relay.ts'
import { TurnRelay } from '../../../relay/turn-relay.ts'
import { defer } from '../../../shared/async.ts'
import type { AppChatRef, ChatRef } from '../../../shared/chat-ref.ts'
import { toChatKey } from '../../../shared/chat-ref.ts'
import type { Store } from '../../../store/store.ts'
import type { TurnLogLimits } from '../../../turns/turn-log.ts'
import type { Turn } from '../../../turns/turn.ts'
import type { OtherTurns, RunsOn, TurnRegistry } from '../../../turns/turn-registry.ts'
import { createTimes } from '../../operations/metrics.ts'
import type { ChatSessions } from '../chat-sessions.ts'
import { LOCK_RETRY_MS } from './chat-locker.ts'
import { toAppChat } from '../backend.ts'

export interface RelayedTurnsOptions extends Pick<TurnRelayOptions, 'onError'> {
  readonly limits: TurnLogLimits
}

/** What happens here when other servers report something, or ask. */
export interface RelayHandlers extends Pick<
  TurnRelayOptions,
  'isAwaited' | 'onTurnChange' | 'onApprovals' | 'handlers'
> {
  /** Whether other servers may send requests. */
  readonly isAsked: () => boolean
}

interface Opened {
  readonly relay: Relay
  readonly turns: TurnRelay
  readonly ledger: Ledger
  readonly sessions: Pick<ChatSessions, 'keepStreamed'>
}

/** How long a client waits for the rows of a turn that has just started on another server. Not every lock of a chat has a turn. */
const APPEAR_MS = 1_000

/** How often a client that waits looks at the lock of the chat, whose release nothing reports. */
const LOCK_LOOK_MS = 250

/** How many locks of a chat are followed to stop its turn. Another one is there only if a turn has ended meanwhile. */
const MAX_OWNERS = 5

/** How often a chat that has become free is looked at again. A server that waits for it tries to lock it at an interval of `LOCK_RETRY_MS`. */
const WAITER_LOOKS = 2

/** How long the rows of an ended turn are kept for servers that have not read its end, and how often older ones are removed. */
const KEEP_ENDED_MS = 60_000
const REMOVE_EVERY_MS = 10_000

/** Turns are written for other servers 20 times a second. */
const LAG_SECONDS = [0.05, 0.075, 0.1, 0.25, 0.5, 1, 2, 5, 15]

/** The running turns of other servers. Without a relay, none of them can be read here. */
export class RelayedTurns implements OtherTurns {
  readonly #options: RelayedTurnsOptions
  readonly #lag = createTimes(
    'relay.lag',
    'How long content of turns waited until other servers could read it.',
    LAG_SECONDS,
  )
  readonly #recovering = new Map<string, Promise<void>>()
  #ledger: Ledger | undefined
  #opened: Opened | undefined
  #signals: PolledSignals | undefined
  /** Called when a turn of a chat has started or ended on another server. */
  readonly #waiting = new Map<string, Set<() => void>>()
  #removedAt = 0

  constructor(options: RelayedTurnsOptions) {
    this.#options = options
  }

  /** Starts to publish the turns of this server and to read those of other ones. */
  start(
    { relay, signals }: Pick<Store, 'relay' | 'signals'>,
    { ledger, sessions }: Pick<Opened, 'ledger' | 'sessions'>,
    { isAsked, ...reports }: RelayHandlers,
  ): void {
    const { limits, ...rest } = this.#options
    const options = { ...rest, ...reports }
    const { worker, leaseMs } = ledger
    this.#ledger = ledger
    if (!relay) {
      // No other process reads turns of this one.
      const handlers = [...options.handlers, onRequest(STOP_TURN, async () => true)]
      const polled = { ...options, handlers, worker, isAwaited: isAsked }
      if (signals) this.#signals = pollSignals({ ...polled, signals })
      return
    }
    const turns = new TurnRelay({
      ...options,
      ...limits,
      relay,
      worker,
      leaseMs,
      onWritten: (lagMs) => this.#lag.record(lagMs / 1_000),
      isAwaited: () => this.#waiting.size > 0 || options.isAwaited(),
      onTurnChange: (change) => {
        options.onTurnChange(change)
        for (const wake of this.#waiting.get(toChatKey(change.chat)) ?? []) wake()
      },
    })
    this.#opened = { relay, turns, ledger, sessions }
    // Not awaited: until hints arrive, everything is read at an interval.
    turns.start().catch(this.#options.onError)
  }

  /** Whether turns of other servers can be read here. */
  get hasRelay(): boolean {
    return this.#opened !== undefined
  }

  /** Asks another server. Undefined if the store has no signals. */
  get ask(): AskServer | undefined {
    return (this.#opened?.turns ?? this.#signals)?.ask
  }

  /** Makes a turn of this server readable on other servers. */
  publish(chat: ChatRef, turn: Turn): void {
    if (this.#opened) this.#opened.turns.publish(toAppChat(this.#opened.ledger, chat), turn)
  }

  /** Notifies other servers that approvals have changed. */
  notifyApprovals(): void {
    this.#opened?.turns.notifyApprovals()
  }

  /** Returns the id of the message that another server is writing in a chat. */
  async messageOf(chat: ChatRef): Promise<string | undefined> {
    return this.#whenStarted(chat, async ({ turns, ledger }, key) => {
      const found = await turns.find(key)
      // The end of a turn may not be written yet.
      return found && !(await ledger.locks.isFree(key)) ? found.messageId : undefined
    })
  }

  /** Returns the running turn of a chat on another server, to be read here. */
  async open(chat: ChatRef): Promise<Turn | undefined> {
    return this.#whenStarted(chat, ({ turns }, key) => turns.open(key))
  }

  /**
   * Stops the turn of another process that has locked a chat, and waits until it is settled. The lock names the process: the relay may
   * not contain the turn yet, or not the end of the turn before. With `messageId`, the turn of another message continues. Rejects with
   * `unavailable` if the process cannot be asked.
   */
  async stop(chat: ChatRef, messageId?: string): Promise<void> {
    const { ask } = this
    const ledger = this.#ledger
    if (!ledger) return
    const key = toAppChat(ledger, chat)
    let askedFor: string | undefined
    for (let attempt = 0; attempt < MAX_OWNERS; attempt += 1) {
      const owner = await findOwner(ledger, key, askedFor === undefined ? 0 : WAITER_LOOKS)
      // A lock without a turn could not be released, and expires.
      if (!owner || owner.token === askedFor) return
      if (!ask) break
      const { worker, token } = owner
      if (await ask(worker, STOP_CHAT, { chat: key, token, messageId })) return
      // That turn had ended before. The one that waited for it may be that of a third server.
      askedFor = token
    }
    throw new ProtocolError('unavailable', { retryAfterSeconds: 1 })
  }

  /**
   * TU6, AP507: stops the turn of another process that has locked a chat if it has no reader, or waits for the answer to a question. Returns
   * whether it runs on. A turn that replies to the user message with the given id is not stopped.
   */
  async stopUnwatched(chat: ChatRef, userMessageId?: string): Promise<RunsOn> {
    const { ask } = this
    const ledger = this.#ledger
    if (!ledger || !ask) return true
    const key = toAppChat(ledger, chat)
    const owner = await ledger.locks.findOther(key)
    const { worker, token } = owner ?? {}
    if (worker === undefined || token === undefined) return false
    return ask(worker, STOP_UNWATCHED, { chat: key, token, userMessageId })
  }

  /** Reads which turns of this server have readers on other ones. */
  async readWatched(): Promise<void> {
    await this.#opened?.turns.readWatched()
  }

  async forget(chat: ChatRef): Promise<void> {
    if (this.#opened) await this.#opened.relay.removeChat(toAppChat(this.#opened.ledger, chat))
  }

  /** Ends the turns of crashed servers and keeps what they have streamed. Removes the rows of ended turns. */
  async sweep(registry: TurnRegistry): Promise<void> {
    if (!this.#opened) return
    const { relay, ledger } = this.#opened
    for (const turn of await relay.abandoned(ledger)) this.#recover(this.#opened, registry, turn)
    if (performance.now() - this.#removedAt < REMOVE_EVERY_MS) return
    this.#removedAt = performance.now()
    await relay.removeEnded(KEEP_ENDED_MS)
  }

  async close(): Promise<void> {
    await Promise.all(this.#recovering.values())
    await this.#opened?.turns.close()
    await this.#signals?.close()
  }

  #recover(opened: Opened, registry: TurnRegistry, turn: RelayTurn): void {
    const { turnId } = turn
    if (this.#recovering.has(turnId)) return
    // The next sweep tries again.
    const recovered = recover(opened, registry, turn)
      .catch(this.#options.onError)
      .finally(() => this.#recovering.delete(turnId))
    this.#recovering.set(turnId, recovered)
  }

  /** Repeats a search while another server holds the chat and has not published its turn yet. */
  async #whenStarted<Result>(
    chat: ChatRef,
    search: (opened: Opened, key: AppChatRef) => Promise<Result | undefined>,
  ): Promise<Result | undefined> {
    const opened = this.#opened
    if (!opened) return undefined
    const key = toAppChat(opened.ledger, chat)
    const until = performance.now() + APPEAR_MS
    let changed = defer()
    const forget = this.#onChange(key, () => changed.resolve())
    try {
      for (;;) {
        // Before the search, so that a turn that starts during the search is noticed.
        changed = defer()
        const found = await search(opened, key)
        if (found !== undefined || performance.now() > until) return found
        if (await opened.ledger.locks.isFree(key)) return await search(opened, key)
        await Promise.race([changed.promise, delay(LOCK_LOOK_MS, undefined, { ref: false })])
      }
    } finally {
      forget()
    }
  }

  /** Calls a function when a turn of a chat has started or ended on another server. Returns a function that ends this. */
  #onChange(chat: AppChatRef, wake: () => void): () => void {
    const key = toChatKey(chat)
    const waiting = this.#waiting.get(key) ?? new Set()
    this.#waiting.set(key, waiting.add(wake))
    return () => {
      waiting.delete(wake)
      if (waiting.size === 0) this.#waiting.delete(key)
    }
  }
}

/** Returns the other process that has locked a chat. Looks this many times more if none has: one that waits for it may lock it (RL880). */
async function findOwner(
  { locks }: Ledger,
  chat: AppChatRef,
  looks: number,
): Promise<LockOwner | undefined> {
  let owner = await locks.findOther(chat)
  for (let look = 0; !owner && look < looks; look += 1) {
    await delay(LOCK_RETRY_MS)
    owner = await locks.findOther(chat)
  }
  return owner
}

/** Stores what a crashed server has streamed, and ends its turn, under the chat lock. */
async function recover(
  { relay, sessions }: Opened,
  registry: TurnRegistry,
  { turnId, chat, messageId }: RelayTurn,
): Promise<void> {
  const { settled } = await registry.start(chat, randomUUID(), {
    waitForRunning: true,
    background: true,
    prepare: async () => {
      const [rows] = await relay.read([{ turnId, seq: 0 }])
      // Another server has ended the turn meanwhile.
      if (!rows || rows.ended) return
      const lines = rows.lines.map(readLine)
      await sessions.keepStreamed(
        chat,
        messageId,
        lines.filter((line): line is Chunk => 'type' in line),
      )
      await relay.end(turnId, INTERRUPTED)
    },
    run: async ({ log }) => log.end(),
  })
  await settled
}

const { error: LOST } = new ProtocolError('turn-lost', {
  message: 'The server that wrote this reply has stopped. What it wrote is kept. You can go on.',
}).toJSON()

/** The end of a turn whose server has crashed. Clients abandon the stream at the error, so the metadata comes first. */
const INTERRUPTED = [
  serialiseChunk({ type: 'message-metadata', messageMetadata: { error: LOST } }),
  serialiseChunk({ type: 'error', errorText: LOST.message }),
]
