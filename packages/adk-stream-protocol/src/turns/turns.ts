import { setTimeout as delay } from 'node:timers/promises'

import { ProtocolError } from '../protocol/errors.ts'
import { Quota } from './quota.ts'
import type { TurnOptions } from './turn.ts'
import { Turn } from './turn.ts'

export interface TurnsOptions extends TurnOptions {
  /** What happens to a message that arrives while an answer is being written and read. */
  readonly whileRunning: 'refuse' | 'queue'
  readonly maxTurns: number
  readonly maxTurnsPerPrincipal: number
  /** Messages that may wait in one chat when `whileRunning` is `queue`. */
  readonly maxQueued: number
  /** Hears of chats in which a turn begins or has ended. */
  readonly onChange: (chat: ChatKey) => void
  /** Takes a chat among all processes, and gives the way to release it, which never rejects. */
  readonly hold: (chat: ChatKey, hold: Hold) => Promise<() => Promise<void>>
}

/** How a turn wants its chat. */
export interface Hold extends Pick<Turn, 'signal' | 'background'> {
  /** What it does while another process holds the chat; `wait` is for answers to what the chat asked. */
  readonly whileHeld: 'refuse' | 'queue' | 'wait'
}

/** Whose chat it is: the unit of ownership and of order. */
export interface ChatKey {
  readonly principalId: string
  readonly chatId: string
}

/** The work of a turn. */
export interface TurnJob {
  /** Waits for the turn before, whoever reads it: an answer to it is not a second message. */
  readonly patient?: boolean
  /** Nobody waits for the turn: a message that comes meanwhile is answered after it. */
  readonly background?: boolean
  /** How long the turn goes on with nobody reading, in place of what holds for others. */
  readonly graceMs?: number
  /** Puts into the log what was told before; done before anybody reads. */
  readonly prepare?: (turn: Turn) => Promise<void>
  /** Whether it ends what was begun before: allowed while the bridge is closing. */
  readonly finishes?: boolean
  /** Does the work and must not throw; the chat is taken until it resolves. */
  readonly run: (turn: Turn) => Promise<void>
}

/** How long a new message waits for the readers of the running turn to turn out gone, before it counts as a second message. */
const LEAVING_MS = 250

/** The running turns: one per chat at a time, here and in all other processes. */
export class Turns {
  readonly #options: TurnsOptions
  readonly #running = new Map<string, Turn>()
  readonly #perPrincipal: Quota
  readonly #queued: Quota
  #state: 'open' | 'draining' | 'closed' = 'open'

  constructor(options: TurnsOptions) {
    this.#options = options
    this.#perPrincipal = new Quota(options.maxTurnsPerPrincipal)
    this.#queued = new Quota(options.maxQueued)
  }

  /** Whether any turn runs. */
  get busy(): boolean {
    return this.#running.size > 0
  }

  running(chat: ChatKey): Turn | undefined {
    const turn = this.#running.get(keyOf(chat))
    return turn?.log.ended ? undefined : turn
  }

  /** Begins a turn when the chat is free for it. */
  async begin(chat: ChatKey, messageId: string, job: TurnJob): Promise<Turn> {
    const key = keyOf(chat)
    while (this.#running.has(key)) await this.#waitFor(key, job.patient === true)
    const isRefused = job.finishes === true ? this.#state === 'closed' : this.#state !== 'open'
    if (isRefused) throw new ProtocolError('unavailable', { retryAfterSeconds: 1 })
    // What goes on with a turn that was begun is not turned away: somebody has decided, or a call has run.
    const isNew = job.patient !== true && job.background !== true && job.finishes !== true
    if (isNew && this.#running.size >= this.#options.maxTurns)
      throw new ProtocolError('overloaded', { retryAfterSeconds: 1 })
    const giveBack = this.#perPrincipal.take(chat.principalId)
    if (!giveBack) throw new ProtocolError('too-many-turns', { retryAfterSeconds: 1 })
    const turn = new Turn(messageId, {
      ...this.#options,
      background: job.background === true,
      ...(job.graceMs !== undefined && { disconnectGraceMs: job.graceMs }),
    })
    this.#running.set(key, turn)
    const free = (): void => {
      this.#running.delete(key)
      giveBack()
      turn.settle()
      this.#options.onChange(chat)
    }
    try {
      const release = await this.#prepare(chat, turn, job)
      this.#options.onChange(chat)
      // Nobody waits for it here; who waits for the turn waits until it is settled.
      void runAndRelease(turn, job, release).finally(free)
    } catch (thrown) {
      turn.log.end()
      free()
      throw thrown
    }
    return turn
  }

  /** Stops the turn of a chat, if one runs, and waits until the chat is free. */
  async stop(chat: ChatKey): Promise<void> {
    const turn = this.#running.get(keyOf(chat))
    turn?.stop()
    await turn?.settled
  }

  /** Begins no new turns; those that run go on. */
  drain(): void {
    this.#state = 'draining'
  }

  /** Stops all turns and takes no new ones. */
  async close(): Promise<void> {
    this.#state = 'closed'
    const turns = [...this.#running.values()]
    for (const turn of turns) turn.stop()
    await Promise.all(turns.map((turn) => turn.settled))
  }

  /** Takes the chat, and makes the turn ready for its readers; gives the way to release the chat. */
  async #prepare(chat: ChatKey, turn: Turn, job: TurnJob): Promise<() => Promise<void>> {
    const { signal, background } = turn
    const whileHeld = job.patient === true ? 'wait' : this.#options.whileRunning
    const release = await this.#options.hold(chat, { signal, background, whileHeld })
    try {
      await job.prepare?.(turn)
      return release
    } catch (thrown) {
      await release()
      throw thrown
    }
  }

  async #waitFor(key: string, patient: boolean): Promise<void> {
    const turn = this.#running.get(key)
    if (!turn) return
    if (patient || turn.background) return turn.settled
    if (turn.log.ended || turn.signal.aborted) return turn.settled
    // TU6: nobody reads the running answer any more and the person has moved on.
    if (turn.log.watched)
      await Promise.race([turn.settled, delay(LEAVING_MS, undefined, { ref: false })])
    if (!turn.log.watched) {
      turn.stop()
      return turn.settled
    }
    if (this.#options.whileRunning === 'refuse') throw new ProtocolError('turn-running')
    await this.#queue(key, turn)
  }

  async #queue(key: string, turn: Turn): Promise<void> {
    const leave = this.#queued.take(key)
    if (!leave) throw new ProtocolError('turn-running')
    try {
      await turn.settled
    } finally {
      leave()
    }
  }
}

async function runAndRelease(
  turn: Turn,
  job: TurnJob,
  release: () => Promise<void>,
): Promise<void> {
  try {
    await job.run(turn)
  } finally {
    await release()
  }
}

/** A chat as one string. A chat id holds no slash, so the key is unambiguous. */
export function keyOf({ principalId, chatId }: ChatKey): string {
  return `${chatId}/${principalId}`
}
