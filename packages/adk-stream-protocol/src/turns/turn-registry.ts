import { setImmediate } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'

import { ProtocolError } from '../protocol/errors.ts'
import { Quota } from '../shared/collections.ts'
import type { TurnLogLimits } from './turn-log.ts'
import { type IdentifiedMessage, Turn } from './turn.ts'
import type { ChatRef } from '../shared/chat-ref.ts'

export interface TurnRegistryOptions extends TurnLogLimits {
  /** How long a turn runs without a reader. */
  readonly disconnectGraceMs: number
  /** What happens to a message that arrives while a turn runs and has a reader. */
  readonly whileRunning: 'refuse' | 'queue'
  readonly maxTurns: number
  readonly maxTurnsPerPrincipal: number
  /** Messages that may wait in one chat when `whileRunning` is `queue`. */
  readonly maxQueued: number
  /** Called when a turn of a chat starts or ends. */
  readonly onChange: (chat: ChatRef) => void
  readonly others: OtherTurns
  /** Locks a chat among all processes. Returns a function that releases the lock and never rejects. */
  readonly lockChat: (chat: ChatRef, request: ChatLockRequest) => Promise<() => Promise<void>>
}

/** The running turns of other processes. */
export interface OtherTurns {
  /** Makes a turn of this process readable in others. Called when it holds the chat lock, before anything is written to it. */
  publish(chat: ChatRef, turn: Turn): void
  /** Returns the running turn of a chat, to be read here. */
  open(chat: ChatRef): Promise<Turn | undefined>
  /** Returns the id of the message that is being written in a chat. */
  messageOf(chat: ChatRef): Promise<string | undefined>
  /** Stops the turn of a chat, or of one message, and waits until it is settled. */
  stop(chat: ChatRef, messageId: string | undefined): Promise<void>
  /** Removes what was published of the turns of a deleted chat. */
  forget(chat: ChatRef): Promise<void>
}

/** How a turn requests the chat lock. */
export interface ChatLockRequest extends Pick<Turn, 'signal' | 'background'> {
  /** What happens while another process holds the lock. `wait` is for responses to questions of the chat. */
  readonly onLocked: 'refuse' | 'queue' | 'wait' | 'refuse-at-once'
  /** Whether the session of the chat is read next. */
  readonly reads: boolean
  /** Called while another process holds the lock. Returns the reply to the message of this turn, if the message was sent before. */
  readonly findReply: (() => Promise<string | undefined>) | undefined
  /** The id of the message of this turn, if it may have been sent before. */
  readonly repliesTo: string | undefined
}

/** Whether the turn of a chat runs on when another one asks for the chat. `repeated`: both reply to the same message. */
export type RunsOn = boolean | 'repeated'

/** TU901: a message of the chat was sent again. */
export class RepeatedMessageError extends ProtocolError {
  /** The reply to the message. */
  readonly messageId: string

  constructor(messageId: string) {
    super('nothing-new')
    this.messageId = messageId
  }
}

/** The work of a turn. */
export interface TurnJob {
  /** The user message that the turn replies to. If it is sent again, it does not start another turn (TU901). */
  readonly repliesTo?: IdentifiedMessage
  /** The id of the user message, also of one that may be sent again. Default: the id of `repliesTo`. */
  readonly userMessageId?: string
  /** Returns the stored reply to that message. Called when the chat is locked, and while another turn or process holds the lock. */
  readonly findReply?: (isLocked: boolean) => Promise<string | undefined>
  /** Whether the job first reads the session of the chat, which may happen in the same step as the lock. */
  readonly reads?: boolean
  /** Rejects with `turn-running` at once, instead of waiting, if the chat has a turn in any process. */
  readonly onlyIfFree?: boolean
  /** Waits for the running turn, even if it has readers. A response to it is not a second message. */
  readonly waitForRunning?: boolean
  /** No client requested the turn: a message that arrives meanwhile waits for it. */
  readonly background?: boolean
  /** Overrides `disconnectGraceMs`: how long the turn runs without a reader. */
  readonly graceMs?: number
  /** Called when the chat is locked, before other processes learn of the turn. If it rejects, the turn does not start. */
  readonly beforeStart?: () => Promise<void>
  /** Fills the log with the earlier chunks of the message. Called before anything reads the turn. */
  readonly prepare?: (turn: Turn) => Promise<void>
  /** Whether the turn only streams a stored message again. Other processes need not know of it. */
  readonly isReplay?: boolean
  /** Whether the turn finishes earlier work. Such a turn may start while the bridge is closing. */
  readonly finishes?: boolean
  /** Runs the turn. Must not throw. The chat stays locked until it resolves. */
  readonly run: (turn: Turn) => Promise<void>
}

/** The running turns. A chat has at most one at a time, in all processes. */
export class TurnRegistry {
  /** The turns of chats that other processes run. */
  readonly others: OtherTurns
  readonly #options: TurnRegistryOptions
  readonly #running = new Map<string, Turn>()
  /** The turns of messages that wait for the turn that runs in their chat. */
  readonly #waiting = new Set<{ readonly key: string; readonly turn: Turn }>()
  /** Whether a turn could be prepared. */
  readonly #prepared = new WeakMap<Turn, Promise<boolean>>()
  /** The turns that have got the chat lock. */
  readonly #locked = new WeakSet<Turn>()
  readonly #perPrincipal: Quota
  readonly #queued: Quota
  #state: 'open' | 'draining' | 'closed' = 'open'

  constructor(options: TurnRegistryOptions) {
    this.#options = options
    this.others = options.others
    this.#perPrincipal = new Quota(options.maxTurnsPerPrincipal)
    this.#queued = new Quota(options.maxQueued)
  }

  /** Whether any turn runs. */
  get busy(): boolean {
    return this.#running.size > 0
  }

  /** The number of running turns. */
  get size(): number {
    return this.#running.size
  }

  /**
   * Returns the turn that writes a message. A replay is none: clients that learned of one would wait for a turn that no feed reports.
   */
  running(chat: ChatRef): Turn | undefined {
    const turn = this.#running.get(keyOf(chat))
    return turn?.log.ended || turn?.isReplay ? undefined : turn
  }

  /** Whether a turn of a chat waits, runs or is not settled, also one that only streams what is stored. */
  has(chat: ChatRef): boolean {
    return this.#running.has(keyOf(chat))
  }

  /** Returns the turn of a chat that has ended at the question of an MCP server while its run continues. */
  asking(chat: ChatRef): Turn | undefined {
    const turn = this.#running.get(keyOf(chat))
    return turn?.asking === undefined ? undefined : turn
  }

  /**
   * TU6, AP507: stops the turn of a chat in this process if it has no reader, or waits for the answer to a question, and waits until it is
   * settled. Returns whether it runs on. TU901: it is not stopped if it replies to the message of the request.
   */
  async stopUnwatched(chat: ChatRef, userMessageId?: string): Promise<RunsOn> {
    const turn = this.#running.get(keyOf(chat))
    if (turn && userMessageId !== undefined && turn.repliesTo?.id === userMessageId)
      return 'repeated'
    const isAsking = turn?.asking !== undefined
    if (turn && (isAsking || !(turn.log.ended || turn.signal.aborted))) {
      if (!isAsking && (turn.background || !(await turn.becomesUnwatched()))) return true
      turn.stop()
    }
    await turn?.settled
    return false
  }

  /** Creates a turn that only streams what is stored. It is not the turn of its chat. */
  createReplay(messageId: string): Turn {
    return new Turn(messageId, this.#options, { graceMs: this.#options.disconnectGraceMs })
  }

  /** Continues the run of a turn that ended at the question of an MCP server, with a log of its own. The chat stays locked. */
  continue(chat: ChatRef, before: Turn): Turn {
    // No client requested it: the answer may have come from an inbox, or not at all.
    const graceMs = this.#options.disconnectGraceMs
    const turn = new Turn(before.messageId, this.#options, { background: true, graceMs, before })
    this.#running.set(keyOf(chat), turn)
    this.#locked.add(turn)
    this.others.publish(chat, turn)
    turn.log.continueFrom(before.log, before.asking ?? '')
    this.#options.onChange(chat)
    return turn
  }

  /** Starts a turn when the chat has no other one. */
  async start(chat: ChatRef, messageId: string, job: TurnJob): Promise<Turn> {
    const key = keyOf(chat)
    if (job.onlyIfFree === true && this.#running.has(key)) throw new ProtocolError('turn-running')
    const { background = false, graceMs = this.#options.disconnectGraceMs } = job
    const turn = new Turn(messageId, this.#options, { background, graceMs })
    turn.repliesTo = job.repliesTo
    turn.userMessageId = job.userMessageId ?? job.repliesTo?.id
    turn.isReplay = job.isReplay === true
    const waiting = { key, turn }
    // A response is no message that a person could stop: its decision is recorded.
    if (job.waitForRunning !== true) this.#waiting.add(waiting)
    try {
      // No `await` between the last look and `set` below: another turn would take the chat.
      while (this.#running.has(key)) await this.#waitFor(key, job)
    } finally {
      this.#waiting.delete(waiting)
    }
    const isRefused = job.finishes === true ? this.#state === 'closed' : this.#state !== 'open'
    if (isRefused) throw new ProtocolError('unavailable', { retryAfterSeconds: 1 })
    // `maxTurns` does not apply to a turn that continues earlier work: a decision was made, or a call has run.
    const isNew = job.waitForRunning !== true && job.background !== true && job.finishes !== true
    if (isNew && this.#running.size >= this.#options.maxTurns)
      throw new ProtocolError('overloaded', { retryAfterSeconds: 1 })
    const release = this.#perPrincipal.take(chat.principalId)
    if (!release) throw new ProtocolError('too-many-turns', { retryAfterSeconds: 1 })
    this.#running.set(key, turn)
    const free = (): void => {
      // Not `turn` if the run has asked a question and continued in another turn.
      const last = this.#running.get(key)
      this.#running.delete(key)
      release()
      last?.settle()
      this.#options.onChange(chat)
    }
    try {
      const prepared = this.#prepare(chat, turn, job)
      this.#prepared.set(
        turn,
        prepared.then(
          () => true,
          () => false,
        ),
      )
      const unlock = await prepared
      this.#options.onChange(chat)
      // Not awaited: callers await `turn.settled`.
      void runAndUnlock(turn, job, unlock).finally(free)
    } catch (thrown) {
      turn.log.end()
      free()
      throw thrown
    }
    return turn
  }

  /**
   * Stops the running turn of a chat, in any process, and waits until it is settled. With `messageId`, the turn of another message
   * continues.
   */
  async stop(chat: ChatRef, messageId?: string): Promise<void> {
    if (!(await this.stopHere(chat, messageId))) await this.others.stop(chat, messageId)
  }

  /**
   * Stops the turn of a chat in this process, and waits until it is settled. Returns false if there was none to stop, or if it waited
   * for a chat that another process has locked: that process may have the turn.
   */
  async stopHere(chat: ChatRef, messageId?: string): Promise<boolean> {
    const key = keyOf(chat)
    // A message that waits for another one is stored as stopped when its time comes.
    for (const { key: waiting, turn } of this.#waiting)
      if (waiting === key && messageId !== undefined && turn.isOf(messageId)) turn.stop()
    for (let turn = this.#running.get(key); turn; turn = this.#running.get(key)) {
      if (messageId !== undefined && !turn.isOf(messageId)) return this.#locked.has(turn)
      const hadEnded = turn.log.ended && turn.asking === undefined
      turn.stop()
      await turn.settled
      if (!hadEnded) return this.#locked.has(turn)
      // A turn that waited for the end of this one, for example that of a decision, starts now.
      await setImmediate()
    }
    return false
  }

  /** Rejects new turns. Running turns continue. */
  drain(): void {
    this.#state = 'draining'
  }

  /** Stops all turns and rejects new ones. */
  async close(): Promise<void> {
    this.#state = 'closed'
    const turns = [...this.#running.values()]
    for (const turn of turns) turn.leave()
    await Promise.all(turns.map((turn) => turn.settled))
  }

  /** Locks the chat and prepares the turn for its readers. Returns a function that unlocks the chat. */
  async #prepare(chat: ChatRef, turn: Turn, job: TurnJob): Promise<() => Promise<void>> {
    const { signal, background } = turn
    const onBusy = job.waitForRunning === true ? 'wait' : this.#options.whileRunning
    const onLocked = job.onlyIfFree === true ? 'refuse-at-once' : onBusy
    const reads = job.reads === true
    const { findReply } = job
    const unlock = await this.#options.lockChat(chat, {
      signal,
      background,
      onLocked,
      reads,
      findReply: findReply && (() => findReply(false)),
      repliesTo: job.repliesTo?.id,
    })
    this.#locked.add(turn)
    try {
      const reply = await findReply?.(true)
      if (reply !== undefined) throw new RepeatedMessageError(reply)
      await job.beforeStart?.()
      if (job.isReplay !== true) this.others.publish(chat, turn)
      await job.prepare?.(turn)
      return unlock
    } catch (thrown) {
      await unlock()
      throw thrown
    }
  }

  async #waitFor(key: string, job: TurnJob): Promise<void> {
    const { repliesTo, waitForRunning = false, findReply } = job
    const turn = this.#running.get(key)
    if (!turn) return
    if (repliesTo && isDeepStrictEqual(repliesTo, turn.repliesTo)) {
      // TU901: a turn that cannot be prepared has no reply. This request then starts another one.
      if ((await this.#prepared.get(turn)) === false) return turn.settled
      throw new RepeatedMessageError(turn.messageId)
    }
    if (waitForRunning || endsByItself(turn)) return turn.settled
    const reply = await findReply?.(false)
    if (reply !== undefined) throw new RepeatedMessageError(reply)
    // Meanwhile the question was answered, or the turn has ended.
    if (this.#running.get(key) !== turn) return
    // AP507: the person writes something else instead of an answer. TU6: the running turn has no reader any more.
    if (turn.asking !== undefined || (await turn.becomesUnwatched())) {
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

/** Whether a new message waits for a turn, even if the turn has no reader. A turn that asks would wait for the answer. */
function endsByItself({ asking, background, log, signal }: Turn): boolean {
  return asking === undefined && (background || log.ended || signal.aborted)
}

async function runAndUnlock(turn: Turn, job: TurnJob, unlock: () => Promise<void>): Promise<void> {
  try {
    await job.run(turn)
  } finally {
    await unlock()
  }
}

/** Returns the principal of a key. */
export function principalOf(key: string): string {
  return key.slice(key.indexOf('/') + 1)
}

/** Returns a chat as one string. A chat id contains no slash, so the key is unambiguous. */
export function keyOf({ principalId, chatId }: ChatRef): string {
  return `${chatId}/${principalId}`
}
