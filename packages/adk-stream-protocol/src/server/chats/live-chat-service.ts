import { randomUUID } from 'node:crypto'

import { toUserContent } from '../../agent/translate/user-content.ts'
import type { MessageRequest, StreamRequest } from '../../protocol/stream-request.ts'
import type { Turn } from '../../turns/turn.ts'
import type { Principal } from '../auth/authenticate.ts'
import type { AgentRequest } from './chat-agents.ts'
import type { LiveRuns } from './live-runs.ts'
import type { OpenedTurn, ChatServiceParts } from './chat-service.ts'
import { RequestChatService } from './chat-service.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'

interface Parts extends ChatServiceParts {
  readonly runs: LiveRuns
}

/** Sends messages to the live session of a chat. */
export class LiveChatService extends RequestChatService {
  readonly #parts: Parts

  constructor(parts: Parts) {
    super(parts)
    this.#parts = parts
  }

  override async send(
    principal: Principal,
    request: StreamRequest,
    onDecided?: () => void,
  ): Promise<OpenedTurn> {
    const chat = { principalId: principal.id, chatId: request.chatId }
    if (request.type === 'message') {
      // A new message and the decisions of other frames do not wait for each other.
      onDecided?.()
      return { turn: await this.sendLive(principal, chat, request), from: 'start' }
    }
    await this.#decideEarlier(principal, chat, request)
    return this.submitResponses(principal, request, onDecided)
  }

  /** Sends a message to the live session of a chat. */
  sendLive(principal: Principal, chat: ChatRef, request: LiveMessageRequest): Promise<Turn> {
    return this.#parts.runs.opening(chat, this.#sendLive(principal, chat, request))
  }

  async #decideEarlier(
    principal: Principal,
    chat: ChatRef,
    { earlier = [] }: Partial<Pick<StreamRequest, 'earlier'>>,
  ): Promise<void> {
    if (earlier.length > 0) await this.#parts.decisions.decideEarlier(principal, chat, earlier)
  }

  /** Sets the agent and the session state of a chat before speech, which carries neither. */
  async prepareSpeech(principal: Principal, chat: ChatRef, asked: AgentRequest): Promise<void> {
    const { context, turnService } = this.#parts
    const agent = await turnService.chooseAgent(principal, chat, asked)
    const state = await context.toState(principal, chat.chatId, undefined)
    await turnService.recordAgent(chat, agent)
    await turnService.setState(chat, state)
  }

  async #sendLive(principal: Principal, chat: ChatRef, request: LiveMessageRequest): Promise<Turn> {
    const { runs, turnService, context } = this.#parts
    const { message, replaces, history = [], hold: held = false } = request
    // RQ121: all checks run before the request changes anything.
    await runs.whenStarted(chat)
    const agent = await turnService.chooseAgent(principal, chat, request)
    const state = await context.toState(principal, chat.chatId, request.context)
    await this.#decideEarlier(principal, chat, request)
    const userMessageId = message.id ?? randomUUID()
    const removed = replaces
      ? userMessageId
      : await turnService.findRemoved(chat, { replaces, history })
    if (removed !== undefined) {
      await turnService.checkRewind(chat, removed)
      await runs.leave(chat)
      await turnService.rewind(chat, removed)
    } else await turnService.cancelPending(chat, (approval) => runs.holds(approval))
    await turnService.recordAgent(chat, agent)
    const run = await runs.open(chat)
    return run.sendMessage(toUserContent(message), { userMessageId, held, state })
  }
}

type LiveMessageRequest = Pick<MessageRequest, 'message' | 'replaces' | 'context'> &
  Partial<Pick<MessageRequest, 'history'>> &
  Partial<Pick<StreamRequest, 'hold' | 'earlier' | 'addressed'>> &
  Pick<AgentRequest, 'named'>
