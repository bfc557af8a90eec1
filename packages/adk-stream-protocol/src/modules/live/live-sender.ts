import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'

import type { Approval } from '../../approvals/approval.ts'
import { findReplyTo } from '../../agent/history/stored-turns.ts'
import { toUserContent } from '../../agent/user-message.ts'
import type { MessageRequest, StreamRequest } from '../../protocol/stream-request.ts'
import type { TurnRegistry } from '../../turns/turn-registry.ts'
import { keyOf } from '../../turns/turn-registry.ts'
import type { Turn } from '../../turns/turn.ts'
import type { Principal } from '../../server/auth/authenticate.ts'
import type { Backend, LazyBackend } from '../../server/chats/backend.ts'
import { toAppChat } from '../../server/chats/backend.ts'
import type { AgentRequest } from '../../server/chats/chat-agents.ts'
import type { LiveConversation } from './session/live-conversation.ts'
import type { LiveRuns } from './live-runs.ts'
import type { ApprovalDecisions } from '../../server/chats/decisions/approval-decisions.ts'
import type { ReadDecision } from '../../server/chats/decisions/message-decisions.ts'
import { readTyped } from '../../server/chats/decisions/message-decisions.ts'
import type { Rewound } from '../../server/chats/chat-sessions.ts'
import type { ContextOptions } from '../../server/chats/request-context.ts'
import { toSessionState } from '../../server/chats/request-context.ts'
import {
  checkRewind,
  findRemoved,
  rewindChat,
  toRemoval,
} from '../../server/chats/turns/rewinds.ts'
import type { TurnService } from '../../server/chats/turns/turn-service.ts'
import { readError } from '../../store/read-error.ts'
import type { AppChatRef, ChatRef } from '../../shared/chat-ref.ts'

export interface LiveSenderParts {
  readonly backend: LazyBackend
  readonly runs: LiveRuns
  readonly turnService: TurnService
  readonly turns: TurnRegistry
  /** Resolves when another process with the live session of a chat has opened the turns of all messages that it has received. */
  readonly whenOwnerOpened: (chat: AppChatRef) => Promise<void>
  /** The option `whenShortened`. */
  readonly whenShortened: 'keep' | 'rewind'
  readonly decisions: ApprovalDecisions
  readonly readDecision: ReadDecision
  /** The option `context`. */
  readonly context: ContextOptions | undefined
}

/** Sends messages and speech to the live sessions of chats. */
export interface LiveSender {
  /** Sends a message to the live session of a chat. */
  readonly send: (principal: Principal, chat: ChatRef, request: LiveMessageRequest) => Promise<Turn>
  /** Lets spoken words decide the open approval of a chat. `authenticate` returns the person who speaks. */
  hear(
    authenticate: () => Promise<Principal>,
    chat: ChatRef,
    spoken: { readonly words: string; readonly isInReach: (shown: Approval) => boolean },
  ): Promise<void>
  /** Sets the agent and the session state of a chat before speech, which carries neither. */
  prepareSpeech(principal: Principal, chat: ChatRef, asked: AgentRequest): Promise<void>
}

/** A message that is being sent. */
interface SentMessage {
  readonly content: MessageRequest['message']['parts']
  readonly turn: Promise<Turn>
}

type LiveMessageRequest = Pick<MessageRequest, 'message' | 'replaces' | 'context'> &
  Partial<Pick<MessageRequest, 'history' | 'newestMessageId' | 'openApprovals'>> &
  Partial<Pick<StreamRequest, 'hold' | 'earlier' | 'addressed'>> &
  Pick<AgentRequest, 'named'>

export function openLiveSender(parts: LiveSenderParts): LiveSender {
  const { readDecision, context } = parts
  /** The newest of the messages that are being sent, by chat and id. */
  const sending = new Map<string, SentMessage>()
  return {
    send: (principal, chat, request) => {
      const { id = randomUUID(), parts: content } = request.message
      const key = JSON.stringify([keyOf(chat), id])
      const before = sending.get(key)
      // LV850: a client that lost its connection sends a message again that is not stored yet.
      const isRepeated = !request.replaces && isDeepStrictEqual(content, before?.content)
      if (before && isRepeated) return before.turn
      // LV17: a message that replaces this one can only do that when it is stored.
      const turn = Promise.allSettled([before?.turn]).then(() =>
        sendMessage(parts, principal, chat, request),
      )
      const sent = { content, turn }
      sending.set(key, sent)
      void Promise.allSettled([turn]).then(() => sending.get(key) === sent && sending.delete(key))
      parts.runs.noteOpening(chat, turn)
      return turn
    },
    hear: async (authenticate, chat, { words, isInReach }) => {
      const decision = readDecision({ words, channel: 'spoken' })
      await decision?.decide(await authenticate(), chat, { isInReach })
    },
    prepareSpeech: async (principal, chat, asked) => {
      const backend = await parts.backend.get()
      const { agents, sessions } = backend
      const key = toAppChat(backend, chat)
      const agent = await agents.choose(principal, key, asked)
      const state = await toSessionState(context, { principal, chatId: chat.chatId }, undefined)
      await agents.record(key, agent)
      await sessions.setState(key, state)
    },
  }
}

async function sendMessage(
  parts: LiveSenderParts,
  principal: Principal,
  chat: ChatRef,
  request: LiveMessageRequest,
): Promise<Turn> {
  const { runs, turnService, turns, decisions, readDecision, context } = parts
  const { message, replaces, history = [], hold: held = false, openApprovals } = request
  const backend = await parts.backend.get()
  // RQ121: all checks run before the request changes anything.
  await runs.whenStarted(chat)
  const key = toAppChat(backend, chat)
  const agent = await backend.agents.choose(principal, key, request)
  const { chatId } = chat
  const state = await toSessionState(context, { principal, chatId }, request.context)
  await decisions.decideEarlier(principal, chat, request.earlier ?? [])
  const findRepeated = () => findReply(backend, chat, request)
  const replied = await findRepeated()
  if (replied !== undefined) return readRepeated(parts, chat, replied)
  const userMessageId = message.id ?? randomUUID()
  const isRewound = parts.whenShortened === 'rewind'
  const shortened = isRewound ? await findRemoved(backend, chat, { replaces, history }) : undefined
  const removed = toRemoval(request, replaces ? userMessageId : shortened)
  if (removed) await checkRewind(backend, key, removed)
  const isInReach = (approval: Approval): boolean => runs.holds(approval)
  const cancelPending = (): Promise<void> => turnService.cancelPending(chat, isInReach)
  const decision = removed ? undefined : readTyped(readDecision, message)
  await backend.agents.record(key, agent)
  let isPrepared = false
  let rewound: Rewound | undefined
  let repeated: string | undefined
  const prepare = async (): Promise<void> => {
    isPrepared = true
    if (removed) {
      rewound = (await rewindChat(backend, turns, { chat, ...removed })) ?? rewound
      return
    }
    // Until this server had the live session, another one may have received the same message.
    repeated = await findRepeated()
    if (repeated === undefined && !decision) await cancelPending()
  }
  const isNew = async (): Promise<boolean> => {
    repeated = await findRepeated()
    return repeated === undefined
  }
  const open = async (): Promise<LiveConversation | undefined> => {
    // A session that another request has opened would not see the rewind, and writes meanwhile.
    if (removed) await runs.leave(chat)
    // The message that it replaces has the same id.
    const id = replaces ? undefined : userMessageId
    const opened = await runs.open(chat, prepare, { id, isNew })
    return opened && removed && !isPrepared ? open() : opened
  }
  const decide = async (): Promise<Approval | undefined> => {
    const decided = await decision?.decide(principal, chat, { isInReach, openApprovals })
    if (!decided) await cancelPending()
    return decided
  }
  const options = { userMessageId, held, state }
  const deliver = async (): Promise<Turn> => {
    const run = await open()
    // The session was open, or another request has opened it.
    if (run && !isPrepared) await prepare()
    if (!run || repeated !== undefined) return readRepeated(parts, chat, repeated ?? '')
    await decision?.check(principal, chat, { openApprovals })
    try {
      return await run.sendMessage(toUserContent(message), options, decision && decide)
    } catch (error) {
      // LV1950: another server has taken the session over, perhaps for the same message.
      if (readError(error).code !== 'turn-lost' || removed) throw error
      isPrepared = false
      return deliver()
    }
  }
  try {
    return await deliver()
  } catch (thrown) {
    const error = readError(thrown)
    const sent = { messageId: randomUUID(), userMessageId, state, error }
    // A server that has taken the session over stores its own message.
    if (rewound && error.code !== 'turn-lost')
      await turnService.keepReplacement(chat, request, { ...sent, ...rewound })
    throw thrown
  }
}

/** TU901: returns the id of the reply to a message that was sent before. */
async function findReply(
  backend: Backend,
  chat: ChatRef,
  { message, replaces }: LiveMessageRequest,
): Promise<string | undefined> {
  const { id } = message
  if (replaces || id === undefined) return undefined
  const session = await backend.sessions.get(toAppChat(backend, chat))
  return session && findReplyTo(session, { id, content: toUserContent(message) })
}

/** Returns the reply to a message that was sent before: its turn, on any server, or the stored message. */
async function readRepeated(
  parts: LiveSenderParts,
  chat: ChatRef,
  messageId: string,
): Promise<Turn> {
  const { backend, runs, turns, turnService } = parts
  const messages = runs.find(chat)?.messages
  const own = messages?.isExpected(messageId) === true && (await messages.turnOf(messageId))
  if (own) return own
  // A server stores a message before it opens the turn of the reply.
  await parts.whenOwnerOpened(toAppChat(await backend.get(), chat))
  const running = await turns.others.open(chat)
  // Otherwise the turn has ended, or ends before its message can be read here: a replay waits for the chat.
  return running?.messageId === messageId ? running : turnService.replay(chat, messageId)
}
