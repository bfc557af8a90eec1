import { randomUUID } from 'node:crypto'

import { z } from 'zod'

import { ProtocolError } from '../protocol/errors.ts'
import type { Deferred } from '../shared/async.ts'
import { SerialTask, defer } from '../shared/async.ts'
import type { Signal, Signals } from './relay.ts'

interface RelaySignalsOptions {
  readonly relay: Signals
  /** The name of this server. */
  readonly worker: string
  /** How long the other server may take to answer. */
  readonly timeoutMs: number
  /** Answers a request of another server. */
  readonly answer: (kind: string, body: unknown) => Promise<unknown>
  readonly onError: (error: unknown) => void
}

/** A request to another server. */
export interface SignalRequest {
  readonly kind: string
  readonly body: unknown
  /** Overrides how long the other server may take to answer. */
  readonly timeoutMs?: number
}

/** The chat that a request is about. */
export const RequestChat = z.object({
  appName: z.string(),
  principalId: z.string(),
  chatId: z.string(),
})

const REPLY = 'reply'

/** Requests between servers. The answer is a signal in the other direction. */
export class RelaySignals {
  readonly #options: RelaySignalsOptions
  readonly #open = new Map<string, Deferred<unknown>>()
  readonly #taking = new SerialTask(() => this.#take())

  constructor(options: RelaySignalsOptions) {
    this.#options = options
  }

  /** Asks another server, and waits for its answer. Rejects with `unavailable` if it does not answer in time. */
  async ask(
    target: string,
    { kind, body, timeoutMs = this.#options.timeoutMs }: SignalRequest,
  ): Promise<unknown> {
    const { relay, worker } = this.#options
    const id = randomUUID()
    const answer = defer<unknown>()
    const late = (): void =>
      answer.reject(new ProtocolError('unavailable', { message: NO_ANSWER, retryAfterSeconds: 1 }))
    const timer = setTimeout(late, timeoutMs)
    this.#open.set(id, answer)
    try {
      const [, answered] = await Promise.all([
        relay.send(target, { id, from: worker, kind, body }),
        answer.promise,
      ])
      return answered
    } finally {
      clearTimeout(timer)
      this.#open.delete(id)
    }
  }

  /** Whether a request waits for its answer. */
  get isWaiting(): boolean {
    return this.#open.size > 0
  }

  /** Takes the signals to this server and answers them. Resolves when they are taken. */
  async take(): Promise<void> {
    await this.#taking.run()
  }

  /** Resolves when no signals are being taken. */
  async settled(): Promise<void> {
    await this.#taking.settled()
  }

  async #take(): Promise<void> {
    const { relay, worker, onError } = this.#options
    try {
      for (const signal of await relay.take(worker)) {
        if (signal.kind === REPLY) this.#resolve(signal)
        // Not awaited: an answer may take seconds.
        else void this.#answer(signal)
      }
    } catch (error) {
      onError(error)
    }
  }

  #resolve({ body }: Signal): void {
    const { id, answer } = body as { id: string; answer: unknown }
    this.#open.get(id)?.resolve(answer)
  }

  async #answer({ id, from, kind, body }: Signal): Promise<void> {
    const { relay, worker, answer, onError } = this.#options
    try {
      const reply = { id, answer: await answer(kind, body) }
      await relay.send(from, { id: randomUUID(), from: worker, kind: REPLY, body: reply })
    } catch (error) {
      // The other server gets no answer, and reports that.
      onError(error)
    }
  }
}

const NO_ANSWER = 'The server that runs this turn does not answer. Try again.'

interface PolledSignalsOptions {
  readonly signals: Signals
  /** The name of this server. */
  readonly worker: string
  /** Whether other servers may send requests to this one. */
  readonly isAwaited: () => boolean
  readonly answer: (kind: string, body: unknown) => Promise<unknown>
  readonly onError: (error: unknown) => void
}

/** The interval at which signals are read while any are expected. */
const POLL_MS = 50
const ANSWER_MS = 5_000

/** Starts to answer requests between the processes of a store without a relay. Signals are read at an interval. */
export function pollSignals(options: PolledSignalsOptions): PolledSignals {
  const { signals: relay, isAwaited } = options
  const signals = new RelaySignals({ ...options, relay, timeoutMs: ANSWER_MS })
  const timer = setInterval(() => {
    if (isAwaited() || signals.isWaiting) void signals.take()
  }, POLL_MS)
  timer.unref()
  return {
    ask: (worker, request) => signals.ask(worker, request),
    close: async () => {
      clearInterval(timer)
      await signals.settled()
    },
  }
}

export interface PolledSignals extends Pick<RelaySignals, 'ask'> {
  /** Stops to read signals. */
  readonly close: () => Promise<void>
}
