import { randomUUID } from 'node:crypto'

import { toUserContent } from '../adk/user-content.ts'
import type { DecisionAnswer, OutputAnswer } from '../protocol/read-answers.ts'
import type { AnswersRequest, MessageRequest, StreamRequest } from '../protocol/stream-request.ts'
import type { Turn } from '../turns/turn.ts'
import type { ChatKey } from '../turns/turns.ts'
import type { ApprovalDesk } from './approval-desk.ts'
import type { Principal } from './authenticate.ts'
import type { LiveRuns } from './live-runs.ts'
import type { TurnDesk } from './turn-desk.ts'
import type { OpenedTurn, TurnSource } from './turn-source.ts'

interface Parts {
  readonly runs: LiveRuns
  readonly turnDesk: TurnDesk
  readonly approvalDesk: ApprovalDesk
  /** What serves a chat that has no live conversation. */
  readonly turnByTurn: TurnSource
}

/** One live conversation per chat: what is said goes into it, and its answers come when they come. */
export class LiveSource implements TurnSource {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async answer(principal: Principal, request: StreamRequest): Promise<OpenedTurn> {
    const chat = { principalId: principal.id, chatId: request.chatId }
    return request.type === 'message'
      ? { turn: await this.say(chat, request), from: 'start' }
      : this.#goOn(principal, chat, request)
  }

  /** Says something in the chat's live conversation. */
  async say(
    chat: ChatKey,
    { message, replaces, hold: held = false }: Pick<MessageRequest, 'message' | 'replaces'> & { readonly hold?: boolean },
  ): Promise<Turn> {
    const { runs, turnDesk } = this.#parts
    const userMessageId = message.id ?? randomUUID()
    if (replaces) {
      await runs.leave(chat)
      await turnDesk.takeBack(chat, userMessageId)
    } else await turnDesk.moveOn(chat, (approval) => runs.holds(approval))
    const run = await runs.open(chat)
    return run.say(toUserContent(message), { userMessageId, held })
  }

  running(chat: ChatKey): Turn | undefined {
    return this.#parts.turnByTurn.running(chat)
  }

  decide(principal: Principal, chat: ChatKey, decision: DecisionAnswer): Promise<string> {
    return this.#parts.turnByTurn.decide(principal, chat, decision)
  }

  async giveOutput(chat: ChatKey, output: OutputAnswer): Promise<void> {
    const { runs, turnByTurn } = this.#parts
    if (runs.find(chat)?.takeOutput(output) !== true) await turnByTurn.giveOutput(chat, output)
  }

  /** Goes on with a message that was answered: where it lives, or turn by turn if its conversation is over. */
  async #goOn(
    principal: Principal,
    chat: ChatKey,
    request: AnswersRequest,
  ): Promise<OpenedTurn> {
    const { runs, approvalDesk, turnDesk } = this.#parts
    const { messageId, seen, given } = await approvalDesk.decideAll(principal, chat, request)
    const run = runs.find(chat)
    const outputs = request.outputs.filter((output) => run?.takeOutput(output) !== true)
    const turn = outputs.length === 0 ? await run?.turnOf(messageId) : undefined
    const after = seen ?? request.outputs[0]?.toolCallId
    if (turn) return { turn, from: after === undefined ? 'pause' : { after } }
    const answers = { outputs, ...(seen !== undefined && { seen }), ...(given && { given }) }
    return { turn: await turnDesk.resume(chat, messageId, answers), from: 'pause' }
  }
}
