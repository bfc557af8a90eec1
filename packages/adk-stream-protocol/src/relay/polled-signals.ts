import type { SignalRequest } from './relay-signals.ts'
import { RelaySignals } from './relay-signals.ts'
import type { Signals } from './relay.ts'

export interface PolledSignalsOptions {
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

/** Requests between processes of a store without a relay. Signals are read at an interval. */
export class PolledSignals {
  readonly #signals: RelaySignals
  readonly #timer: NodeJS.Timeout

  constructor({ signals, worker, isAwaited, answer, onError }: PolledSignalsOptions) {
    this.#signals = new RelaySignals({
      relay: signals,
      worker,
      timeoutMs: ANSWER_MS,
      answer,
      onError,
    })
    this.#timer = setInterval(() => {
      if (isAwaited() || this.#signals.isWaiting) void this.#signals.take()
    }, POLL_MS)
    this.#timer.unref()
  }

  /** Asks another process. Rejects with `unavailable` if it does not answer. */
  ask(worker: string, request: SignalRequest): Promise<unknown> {
    return this.#signals.ask(worker, request)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#signals.settled()
  }
}
