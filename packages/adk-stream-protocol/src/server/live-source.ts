import { randomUUID } from 'node:crypto'

import { toUserContent } from '../adk/user-content.ts'
import type { MessageRequest, StreamRequest } from '../protocol/stream-request.ts'
import type { Turn } from '../turns/turn.ts'
import type { ChatKey } from '../turns/turns.ts'
import type { Principal } from './authenticate.ts'
import type { LiveRuns } from './live-runs.ts'
import type { StateDelta } from './request-context.ts'
import type { OpenedTurn, TurnSourceParts } from './turn-source.ts'
import { TurnByTurn } from './turn-source.ts'

interface Parts extends TurnSourceParts {
  readonly runs: LiveRuns
}

/** One live conversation per chat: what is said goes into it, and its answers come when they come. */
export class LiveSource extends TurnByTurn {
  readonly #parts: Parts

  constructor(parts: Parts) {
    super(parts)
    this.#parts = parts
  }

  override async answer(principal: Principal, request: StreamRequest): Promise<OpenedTurn> {
    const chat = { principalId: principal.id, chatId: request.chatId }
    const { earlier } = request
    // RQ121: what is refused is refused before anything is done for the request.
    if (request.type === 'message')
      await this.#parts.context.toState(principal, chat.chatId, request.context)
    if (earlier.length > 0) await this.#parts.approvalDesk.decideEarlier(principal, chat, earlier)
    return request.type === 'message'
      ? { turn: await this.say(principal, chat, request), from: 'start' }
      : this.goOn(principal, chat, request)
  }

  /** Says something in the chat's live conversation. */
  say(principal: Principal, chat: ChatKey, said: Said): Promise<Turn> {
    const { runs, context } = this.#parts
    const state = context.toState(principal, chat.chatId, said.context)
    return runs.opening(chat, this.#say(chat, said, state))
  }

  /** Sets the state of a chat in which a principal only speaks: no message carries it. */
  async introduce(principal: Principal, chat: ChatKey): Promise<void> {
    const { context, turnDesk } = this.#parts
    await turnDesk.setState(chat, await context.toState(principal, chat.chatId, undefined))
  }

  async #say(chat: ChatKey, said: Said, given: Promise<StateDelta>): Promise<Turn> {
    const { runs, turnDesk } = this.#parts
    const { message, replaces, history = [], hold: held = false } = said
    const state = await given
    const userMessageId = message.id ?? randomUUID()
    const removed = replaces
      ? userMessageId
      : await turnDesk.findRemoved(chat, { replaces, history })
    if (removed !== undefined) {
      await runs.leave(chat)
      await turnDesk.takeBack(chat, removed)
    } else await turnDesk.moveOn(chat, (approval) => runs.holds(approval))
    const run = await runs.open(chat)
    return run.say(toUserContent(message), { userMessageId, held, state })
  }
}

type Said = Pick<MessageRequest, 'message' | 'replaces' | 'context'> &
  Partial<Pick<MessageRequest, 'history'>> &
  Pick<StreamRequest, 'hold'>
