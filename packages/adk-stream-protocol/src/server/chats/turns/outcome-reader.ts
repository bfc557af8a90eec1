import { closeAtPause, findResumeIndex, replayTurn } from '../../../agent/history/replay-turn.ts'
import type { ReplayedTurn } from '../../../agent/history/replay-turn.ts'
import { finishTranslation } from '../../../agent/translate/translate-event.ts'
import type { TranslationOptions } from '../../../agent/translate/translate-event.ts'
import { readVoters } from '../../../agent/call-responses.ts'
import type { Approval } from '../../../approvals/approval.ts'
import type { Chunk } from '../../../protocol/chunk.ts'
import { ProtocolError, toProtocolError } from '../../../protocol/errors.ts'
import type { ChatRef } from '../../../shared/chat-ref.ts'
import { Quota } from '../../../shared/collections.ts'
import type { UntilMet } from '../../../turns/chat-events.ts'
import type { TurnRegistry } from '../../../turns/turn-registry.ts'
import { isClosing, type Turn } from '../../../turns/turn.ts'
import type { Backend, LazyBackend } from '../backend.ts'
import { toAppChat } from '../backend.ts'
import { readCallState } from '../host/stored-calls.ts'
import { prefillTurn } from './turn-runs.ts'

export interface OutcomeReaderOptions extends TranslationOptions {
  readonly backend: LazyBackend
  readonly turns: Pick<TurnRegistry, 'createReplay' | 'running'>
  readonly untilMet: UntilMet
  readonly maxTurnsPerPrincipal: number
  /** Whether calls of a live session run that clients see as running. */
  readonly hasRunningCalls: (chat: ChatRef, messageId: string) => boolean
  readonly onError: (error: unknown) => void
}

/** A message that waits for calls that run although its turn has ended. */
interface RunningCalls {
  readonly messageId: string
  /** The approval or call after which the client continues to read. */
  readonly seen: string | undefined
  /** The approvals of the calls. */
  readonly running: readonly Approval[]
  /** Approvals for which the client has sent a vote, and which wait for other people. */
  readonly asked?: readonly Approval[]
}

interface Wait extends RunningCalls {
  readonly chat: ChatRef
  readonly turn: Turn
  /** What the log contains. */
  readonly replayed: ReplayedTurn
  /** The events from which it was replayed. */
  readonly replayedIds: ReadonlySet<string>
}

/**
 * Streams the outcomes of calls that still run although their turns have ended, to clients that send their decisions again. Only reads:
 * the process that runs a call stores its outcome, or another one does when the lease of that process has expired.
 */
export class OutcomeReader {
  readonly #options: OutcomeReaderOptions
  readonly #perPrincipal: Quota
  readonly #waits = new Set<Wait>()
  #isDraining = false

  constructor(options: OutcomeReaderOptions) {
    this.#options = options
    this.#perPrincipal = new Quota(options.maxTurnsPerPrincipal)
  }

  /** Whether a client waits for a call. */
  get busy(): boolean {
    return this.#waits.size > 0
  }

  /**
   * Returns a turn that ends when the calls have ended and the rest of their message is stored, or when its reader disconnects. It is not
   * the turn of its chat, which stays free for other messages.
   */
  async read(chat: ChatRef, calls: RunningCalls): Promise<Turn> {
    const { backend, turns } = this.#options
    const release = this.#perPrincipal.take(chat.principalId)
    if (!release) throw new ProtocolError('too-many-turns', { retryAfterSeconds: 1 })
    try {
      const opened = await backend.get()
      const key = toAppChat(opened, chat)
      const stored = await opened.sessions.findTurn(key, calls.messageId)
      if (!stored) throw new ProtocolError('nothing-new')
      const replayed = closeAtPause(replayTurn(stored, this.#options))
      const turn = turns.createReplay(calls.messageId)
      const pause = findResumeIndex(replayed, calls.seen)
      const { ledger } = opened
      await prefillTurn(turn, replayed, { ledger, chat: key, pause })
      for (const chunk of askAgain(replayed, calls.asked ?? [])) turn.log.append(chunk)
      const replayedIds = new Set(stored.events.map(({ id }) => id))
      const wait = { ...calls, chat, turn, replayed, replayedIds }
      // The client can wait at another server.
      if (this.#isDraining && !this.#runsHere(wait)) throw CLOSING
      this.#waits.add(wait)
      // Not awaited: the client reads the turn. `#stream` never rejects.
      void this.#stream(opened, wait).finally(() => {
        this.#waits.delete(wait)
        release()
      })
      return turn
    } catch (thrown) {
      release()
      throw thrown
    }
  }

  /** Ends the streams that wait for calls of other processes. Those of this process end with their calls. */
  drain(): void {
    this.#isDraining = true
    for (const wait of this.#waits) if (!this.#runsHere(wait)) wait.turn.leave()
  }

  /** Ends all streams. */
  async close(): Promise<void> {
    const ended = [...this.#waits].map(({ turn }) => {
      turn.leave()
      return turn.settled
    })
    await Promise.all(ended)
  }

  #runsHere({ running }: Wait): boolean {
    const { ledger } = this.#options.backend.opened ?? {}
    return running.some((approval) => ledger?.runsHere(approval))
  }

  /** Writes the rest of the message when it is stored. */
  async #stream(backend: Backend, wait: Wait): Promise<void> {
    const { turn, replayed } = wait
    let rest: readonly Chunk[]
    try {
      await this.#untilStored(backend, wait)
      rest = turn.signal.aborted ? endWith(replayed, CLOSING) : await this.#readRest(backend, wait)
    } catch (thrown) {
      this.#options.onError(thrown)
      rest = endWith(replayed, toProtocolError(thrown))
    }
    // A client that has disconnected reads nothing.
    const isRead = !turn.signal.aborted || isClosing(turn.signal)
    if (isRead) turn.log.appendTogether(() => rest.forEach((chunk) => turn.log.append(chunk)))
    turn.log.end()
    turn.settle()
  }

  /** Resolves when the conversation shows the outcomes of all calls and nothing more is being written, or when the turn is stopped. */
  async #untilStored(backend: Backend, wait: Wait): Promise<void> {
    const { chat, running, turn } = wait
    const isStored = (): Promise<boolean> => this.#isStored(backend, wait)
    await this.#options.untilMet(chat, isStored, { running, signal: turn.signal })
  }

  async #isStored(backend: Backend, { chat, messageId, running }: Wait): Promise<boolean> {
    for (const approval of running)
      if ((await readCallState(backend, approval)) === 'asked') return false
    if (this.#options.turns.running(chat)?.messageId === messageId) return false
    // Another process may be writing the reply.
    return backend.ledger.locks.isFree(chat)
  }

  async #readRest(backend: Backend, wait: Wait): Promise<readonly Chunk[]> {
    const { chat, messageId, replayed, replayedIds } = wait
    const stored = await backend.sessions.findTurn(toAppChat(backend, chat), messageId)
    // The chat was deleted, or the message was replaced.
    if (!stored) return endWith(replayed, new ProtocolError('nothing-new'))
    let start = Infinity
    const whole = replayTurn(stored, this.#options, ({ id }, index) => {
      if (!replayedIds.has(id)) start = Math.min(start, index)
    })
    const { chunks, state, lastError: error } = closeAtPause(whole)
    const end = this.#options.hasRunningCalls(chat, messageId) ? 'left' : 'completed'
    return [...chunks.slice(start), ...finishTranslation({ ...state, error }, end)]
  }
}

const CLOSING = new ProtocolError('unavailable', { retryAfterSeconds: 1 })

/**
 * Returns the chunks after a vote that is not enough: the approval is requested again. A stock client would otherwise keep its decision as
 * one that was not sent, and send it again and again. `by` says who has voted.
 */
function askAgain({ chunks }: ReplayedTurn, asked: readonly Approval[]): Chunk[] {
  return asked.flatMap((approval): Chunk[] => {
    const { id: approvalId, toolCallId } = approval
    const shown = chunks.findLast(
      (chunk) => chunk.type === 'data-approval' && chunk.id === approvalId,
    )
    const request = { type: 'tool-approval-request', approvalId, toolCallId } as const
    if (shown?.type !== 'data-approval') return [request]
    const data = { ...shown.data, by: readVoters(approval) }
    return [request, { ...shown, data, transient: true }]
  })
}

function endWith({ state }: ReplayedTurn, error: ProtocolError): Chunk[] {
  return finishTranslation({ ...state, error: error.toJSON().error }, 'completed')
}
