import { randomUUID } from 'node:crypto'

import { ProtocolError } from '../protocol/errors.ts'
import type { Deferred } from '../shared/async.ts'
import { SerialTask, defer } from '../shared/async.ts'
import type { Signal, Signals } from './relay.ts'
import type { AskServer, ServerRequestHandler } from './server-requests.ts'
import { handleRequest } from './server-requests.ts'

interface RelaySignalsOptions {
  readonly relay: Signals
  /** The name of this server. */
  readonly worker: string
  /** How long the other server may take to answer. */
  readonly timeoutMs: number
  readonly handlers: readonly ServerRequestHandler[]
  readonly onError: (error: unknown) => void
}

interface SentRequest {
  readonly name: string
  readonly body: unknown
  readonly timeoutMs: number | undefined
}

const REPLY = 'reply'

/** Requests between servers. The answer is a signal in the other direction. */
export class RelaySignals {
  readonly #options: RelaySignalsOptions
  readonly #open = new Map<string, Deferred<unknown>>()
  /** Asks another server. The timeout overrides how long it may take. */
  readonly ask: AskServer = async (server, { name, reply }, body, timeoutMs) =>
    reply.parse(await this.#ask(server, { name, body, timeoutMs }))
  readonly #taking = new SerialTask(() => this.#take())

  constructor(options: RelaySignalsOptions) {
    this.#options = options
  }

  async #ask(
    target: string,
    { name: kind, body, timeoutMs = this.#options.timeoutMs }: SentRequest,
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
    const { relay, worker, handlers, onError } = this.#options
    try {
      const reply = { id, answer: await handleRequest(handlers, kind, body) }
      await relay.send(from, { id: randomUUID(), from: worker, kind: REPLY, body: reply })
    } catch (error) {
      // The other server gets no answer, and reports that.
      onError(error)
    }
  }
}

const NO_ANSWER = 'The server that runs this turn does not answer. Try again.'

interface PolledSignalsOptions extends Omit<RelaySignalsOptions, 'relay' | 'timeoutMs'> {
  readonly signals: Signals
  /** Whether other servers may send requests to this one. */
  readonly isAwaited: () => boolean
}

/** The interval at which signals are read while any are expected. */
const POLL_MS = 50
const ANSWER_MS = 5_000

/** Starts to answer requests between the processes of a store without a relay. Signals are read at an interval. */
export function pollSignals(options: PolledSignalsOptions): PolledSignals {
  const { signals: relay, isAwaited } = options
  const signals = new RelaySignals({ ...options, relay, timeoutMs: ANSWER_MS })
  let readUntil = -Infinity
  const timer = setInterval(() => {
    // A request may have been sent just before this process had nothing to stop any more. The other process waits for the reply.
    if (isAwaited() || signals.isWaiting) readUntil = performance.now() + ANSWER_MS
    if (performance.now() < readUntil) void signals.take()
  }, POLL_MS)
  timer.unref()
  return {
    ask: signals.ask,
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
