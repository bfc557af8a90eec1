import { setTimeout as delay } from 'node:timers/promises'

import { z } from 'zod'

import type { Approval } from '../../../approvals/approval.ts'
import { isElicitation } from '../../../calls/question-terms.ts'
import type { SignalRequest } from '../../../relay/relay-signals.ts'
import { RequestChat } from '../../../relay/relay-signals.ts'
import type { ChatRef } from '../../../shared/chat-ref.ts'
import type { ReadFrom } from '../../../turns/turn-log.ts'
import type { Turn } from '../../../turns/turn.ts'
import type { TurnRegistry } from '../../../turns/turn-registry.ts'
import type { LazyBackend } from '../backend.ts'
import { toAppChat } from '../backend.ts'
import { readCallState } from './stored-calls.ts'
import type { TurnService } from './turn-service.ts'
import type { TurnsElsewhere } from './turns-elsewhere.ts'

export interface AskingTurnsOptions {
  readonly backend: LazyBackend
  readonly turns: () => TurnRegistry
  readonly turnService: () => Pick<TurnService, 'replayAtQuestion'>
  readonly elsewhere: Pick<TurnsElsewhere, 'open' | 'ask'>
}

/** A turn, and the position from which a client reads it. */
interface Readable {
  readonly turn: Turn
  readonly from: ReadFrom
}

const STOP = 'stop-asking'
const StopRequest = z.object({ chat: RequestChat })

const POLL_MS = 50

/** Turns that have ended at the question of an MCP server, while the call that asked waits for the answer, here or in another process. */
export class AskingTurns {
  readonly #options: AskingTurnsOptions

  constructor(options: AskingTurnsOptions) {
    this.#options = options
  }

  /** Returns the open question of an MCP server in a chat. A chat has one turn at a time, and a turn one such question. */
  async questionOf(chat: ChatRef): Promise<Approval | undefined> {
    const { ledger } = await this.#options.backend.get()
    return (await ledger.pendingOf(toAppChat(ledger, chat))).find(isElicitation)
  }

  /** Returns the turn that continues after the answer to a question. Undefined if it has ended, or cannot be read here. */
  async read(chat: ChatRef, answered: Approval): Promise<Readable | 'waits' | undefined> {
    const { id, messageId, liveWorker } = answered
    const { ledger } = await this.#options.backend.get()
    const found =
      liveWorker === ledger.worker
        ? await this.#readHere(chat, id)
        : await this.#readElsewhere(chat, answered)
    if (found?.messageId === messageId && found.log.isMarked(id))
      return { turn: found, from: { after: id } }
    return this.readUntilQuestion(chat, { messageId, seen: id })
  }

  /**
   * Returns the rest of a message up to its open question, or `waits` if the client has it or the question is in another message: the
   * chat does not continue before the answer. Undefined if no question is open.
   */
  async readUntilQuestion(
    chat: ChatRef,
    { messageId, seen }: { readonly messageId: string; readonly seen: string | undefined },
  ): Promise<Readable | 'waits' | undefined> {
    const question = await this.questionOf(chat)
    // A live session continues while one of its calls asks.
    if (!question || !(await this.#isLocked(chat))) return undefined
    if (question.messageId !== messageId) return 'waits'
    const turn = await this.#options.turnService().replayAtQuestion(chat, { messageId, seen })
    return turn ? { turn, from: 'pause' } : 'waits'
  }

  /** Stops a turn of another process that waits for an answer. Returns whether there was one. */
  async stopElsewhere(chat: ChatRef): Promise<boolean> {
    const { backend, elsewhere } = this.#options
    const { ledger } = await backend.get()
    const { liveWorker } = (await this.questionOf(chat)) ?? {}
    if (liveWorker === undefined || liveWorker === ledger.worker || !elsewhere.ask) return false
    const request: SignalRequest = { kind: STOP, body: { chat: toAppChat(ledger, chat) } }
    return (await elsewhere.ask(liveWorker, request)) === true
  }

  /** Answers a request of another process. Undefined if it is about something else. */
  async answer(kind: string, body: unknown): Promise<boolean | undefined> {
    if (kind !== STOP) return undefined
    const turn = this.#options.turns().asking(StopRequest.parse(body).chat)
    turn?.stop()
    await turn?.settled
    return turn !== undefined
  }

  /** Whether a turn holds the chat: one that waits for an answer here, or any in another process. */
  async #isLocked(chat: ChatRef): Promise<boolean> {
    if (this.#options.turns().asking(chat)) return true
    const { ledger } = await this.#options.backend.get()
    return ledger.locks.isLockedElsewhere(chat)
  }

  /** Returns the turn of this process that has streamed something after a question. */
  async #readHere(chat: ChatRef, approvalId: string): Promise<Turn | undefined> {
    const turns = this.#options.turns()
    const asking = turns.asking(chat)
    if (asking?.asking === approvalId) return asking.next
    return asking ?? turns.running(chat)
  }

  /**
   * Returns the turn that continues in another process, when that process has taken the answer. If the turn cannot be read here, waits
   * for its next question or its end.
   */
  async #readElsewhere(chat: ChatRef, answered: Approval): Promise<Turn | undefined> {
    const { elsewhere } = this.#options
    const backend = await this.#options.backend.get()
    const until = performance.now() + 2 * backend.ledger.leaseMs
    while (performance.now() < until) {
      if ((await readCallState(backend, answered)) !== 'running') {
        const turn = await elsewhere.open(chat)
        if (turn || (await this.questionOf(chat))) return turn
        if (!(await this.#isLocked(chat))) return turn
      }
      await delay(POLL_MS)
    }
    return undefined
  }
}
