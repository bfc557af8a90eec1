import { randomUUID } from 'node:crypto'

import { toUserContent } from '../../agent/translate/user-content.ts'
import type { MessageRequest, StreamRequest } from '../../protocol/stream-request.ts'
import type { Turn } from '../../turns/turn.ts'
import type { ChatKey } from '../../turns/turns.ts'
import type { Principal } from '../auth/authenticate.ts'
import type { AgentRequest } from './chat-agents.ts'
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

  override async answer(
    principal: Principal,
    request: StreamRequest,
    onDecided?: () => void,
  ): Promise<OpenedTurn> {
    const chat = { principalId: principal.id, chatId: request.chatId }
    if (request.type === 'message') {
      // A new message is not held back by what it decides on the way, nor does it hold other decisions back.
      onDecided?.()
      return { turn: await this.say(principal, chat, request), from: 'start' }
    }
    await this.#decideEarlier(principal, chat, request)
    return this.goOn(principal, request, onDecided)
  }

  /** Says something in the chat's live conversation. */
  say(principal: Principal, chat: ChatKey, said: Said): Promise<Turn> {
    return this.#parts.runs.opening(chat, this.#say(principal, chat, said))
  }

  async #decideEarlier(
    principal: Principal,
    chat: ChatKey,
    { earlier = [] }: Partial<Pick<StreamRequest, 'earlier'>>,
  ): Promise<void> {
    if (earlier.length > 0) await this.#parts.approvalDesk.decideEarlier(principal, chat, earlier)
  }

  /** Sets the agent and the state of a chat in which a principal only speaks: no message carries them. */
  async introduce(principal: Principal, chat: ChatKey, asked: AgentRequest): Promise<void> {
    const { context, turnDesk } = this.#parts
    const agent = await turnDesk.chooseAgent(principal, chat, asked)
    const state = await context.toState(principal, chat.chatId, undefined)
    await turnDesk.recordAgent(chat, agent)
    await turnDesk.setState(chat, state)
  }

  async #say(principal: Principal, chat: ChatKey, said: Said): Promise<Turn> {
    const { runs, turnDesk, context } = this.#parts
    const { message, replaces, history = [], hold: held = false } = said
    // RQ121: what is refused is refused before anything is done for the request.
    await runs.begun(chat)
    const agent = await turnDesk.chooseAgent(principal, chat, said)
    const state = await context.toState(principal, chat.chatId, said.context)
    await this.#decideEarlier(principal, chat, said)
    const userMessageId = message.id ?? randomUUID()
    const removed = replaces
      ? userMessageId
      : await turnDesk.findRemoved(chat, { replaces, history })
    if (removed !== undefined) {
      await turnDesk.checkRewind(chat, removed)
      await runs.leave(chat)
      await turnDesk.takeBack(chat, removed)
    } else await turnDesk.moveOn(chat, (approval) => runs.holds(approval))
    await turnDesk.recordAgent(chat, agent)
    const run = await runs.open(chat)
    return run.say(toUserContent(message), { userMessageId, held, state })
  }
}

type Said = Pick<MessageRequest, 'message' | 'replaces' | 'context'> &
  Partial<Pick<MessageRequest, 'history'>> &
  Partial<Pick<StreamRequest, 'hold' | 'earlier' | 'addressed'>> &
  Pick<AgentRequest, 'named'>
