import { randomUUID } from 'node:crypto'

import { toUserContent } from '../adk/user-content.ts'
import type { MessageRequest, StreamRequest } from '../protocol/stream-request.ts'
import type { Turn } from '../turns/turn.ts'
import type { ChatKey } from '../turns/turns.ts'
import type { Principal } from './authenticate.ts'
import type { LiveRuns } from './live-runs.ts'
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
    if (earlier.length > 0) await this.#parts.approvalDesk.decideEarlier(principal, chat, earlier)
    return request.type === 'message'
      ? { turn: await this.say(chat, request), from: 'start' }
      : this.goOn(principal, chat, request)
  }

  /** Says something in the chat's live conversation. */
  say(chat: ChatKey, said: Said): Promise<Turn> {
    return this.#parts.runs.opening(chat, this.#say(chat, said))
  }

  async #say(chat: ChatKey, said: Said): Promise<Turn> {
    const { runs, turnDesk } = this.#parts
    const { message, replaces, history = [], hold: held = false } = said
    const userMessageId = message.id ?? randomUUID()
    const removed = replaces
      ? userMessageId
      : await turnDesk.findRemoved(chat, { replaces, history })
    if (removed !== undefined) {
      await runs.leave(chat)
      await turnDesk.takeBack(chat, removed)
    } else await turnDesk.moveOn(chat, (approval) => runs.holds(approval))
    const run = await runs.open(chat)
    return run.say(toUserContent(message), { userMessageId, held })
  }
}

type Said = Pick<MessageRequest, 'message' | 'replaces'> &
  Partial<Pick<MessageRequest, 'history'>> &
  Pick<StreamRequest, 'hold'>
