import { randomUUID } from 'node:crypto'

import type { BaseSessionService, Event, Session } from '@google/adk'
import { createEvent } from '@google/adk'
import type { Content } from '@google/genai'

import { hasReadableText, toUserContent } from '../../agent/user-message.ts'
import type { Cut } from '../../agent/history/cut-events.ts'
import { cutEvents } from '../../agent/history/cut-events.ts'
import type { EventNotes, RepliedNote } from '../../agent/events/event-notes.ts'
import { writeNotes } from '../../agent/events/event-notes.ts'
import {
  repeatsReplies,
  findUnstored,
  respondToDanglingCalls,
  storePartialReply,
} from '../../agent/tree/interrupted-turn.ts'
import { positionOf } from '../../agent/history/position.ts'
import type { Conversation, ReadConversationOptions } from '../../agent/history/replay-turn.ts'
import type { StoredTurn } from '../../agent/history/stored-turns.ts'
import { readConversation, replayTurn } from '../../agent/history/replay-turn.ts'
import { findTurn, splitTurns } from '../../agent/history/stored-turns.ts'
import type { Chunk } from '../../protocol/chunk.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { MessageRequest } from '../../protocol/stream-request.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'
import type { ChatStore } from '../../store/store.ts'
import { canReadFirstMessage, canReadLocked, isRewindable } from '../../store/store.ts'
import type { StateDelta } from './request-context.ts'
import { changesIn } from './request-context.ts'

export interface ChatSessionsOptions {
  readonly service: BaseSessionService
  readonly chats: ChatStore
  /** Returns the author of events of the agent of a chat. Throws if the bridge does not have the agent. */
  readonly authorOf: (chat: AppChatRef) => Promise<string>
}

interface StoredReply {
  readonly messageId: string
  readonly userMessageId: string
  readonly replied: RepliedNote
  readonly state: StateDelta
}

/** The stored conversations. Each chat has one ADK session. Nothing here runs an agent. */
export class ChatSessions {
  /** ADK's session service. */
  readonly service: BaseSessionService
  readonly #chats: ChatStore
  readonly #authorOf: (chat: AppChatRef) => Promise<string>

  constructor({ service, chats, authorOf }: ChatSessionsOptions) {
    this.service = service
    this.#chats = chats
    this.#authorOf = authorOf
  }

  /** Returns the session of a chat, or undefined if it does not exist. */
  async get(chat: AppChatRef): Promise<Session | undefined> {
    return this.service.getSession(toSessionKey(chat))
  }

  /** Returns the session of a chat that was just locked. */
  async getLocked(chat: AppChatRef): Promise<Session | undefined> {
    const { service } = this
    const key = toSessionKey(chat)
    return canReadLocked(service) ? service.getLockedSession(key) : service.getSession(key)
  }

  /** Like `getLocked`, and creates the session of a new chat. It may be stored only with its first event. */
  async getOrCreateLocked(chat: AppChatRef): Promise<Session> {
    const { service } = this
    const key = toSessionKey(chat)
    return canReadLocked(service)
      ? service.getOrCreateLockedSession(key)
      : service.getOrCreateSession(key)
  }

  /** Returns a stored turn, or undefined if it does not exist. */
  async findTurn(chat: AppChatRef, messageId: string): Promise<StoredTurn | undefined> {
    const session = await this.get(chat)
    return session && findTurn(session.events, messageId)
  }

  /** Returns all stored turns of a chat, in order. */
  async readTurns(chat: AppChatRef): Promise<StoredTurn[]> {
    const session = await this.get(chat)
    return session ? splitTurns(session.events) : []
  }

  /** Returns the stored messages without the one that is being streamed. A chat that does not exist has none. */
  async readConversation(
    chat: AppChatRef,
    options: ReadConversationOptions,
  ): Promise<Conversation> {
    const session = await this.get(chat)
    return readConversation(session?.events ?? [], options)
  }

  /** Returns the position of a chat. */
  async readPosition(chat: AppChatRef): Promise<string> {
    return positionOf((await this.get(chat))?.events ?? [])
  }

  async exists(chat: AppChatRef): Promise<boolean> {
    const session = await this.service.getSession({
      ...toSessionKey(chat),
      config: { numRecentEvents: 1 },
    })
    return session !== undefined
  }

  /** Returns the first message event of the user in a chat. */
  async findOpening(chat: AppChatRef): Promise<Event | undefined> {
    if (canReadFirstMessage(this.service)) return this.service.readFirstMessage(toSessionKey(chat))
    const session = await this.get(chat)
    return session?.events.find(
      ({ author, content }) => author === 'user' && hasReadableText(content),
    )
  }

  async delete(chat: AppChatRef): Promise<void> {
    await this.service.deleteSession(toSessionKey(chat))
    await this.#chats.drop(chat)
  }

  /**
   * Stores a user message that decided an approval. The agent does not run for it: it continues in the message with the call. Returns
   * the event that reports the decision to clients.
   */
  async storeReply(
    chat: AppChatRef,
    { message }: Pick<MessageRequest, 'message'>,
    { messageId, userMessageId, replied, state }: StoredReply,
  ): Promise<Event> {
    const session = await this.service.getOrCreateSession(toSessionKey(chat))
    const invocationId = `e-${randomUUID()}`
    const last = session.events.findLast(({ author }) => author !== 'user')?.author
    const author = last ?? (await this.#authorOf(chat))
    const stateDelta = changesIn(session.state, state)
    const said = createEvent({
      author: 'user',
      invocationId,
      content: toUserContent(message),
      customMetadata: writeNotes({ messageId, userMessageId }),
      ...(Object.keys(stateDelta).length > 0 && { actions: { stateDelta } }),
    })
    const customMetadata = writeNotes({ messageId, replied })
    const decided = createEvent({ author, invocationId, customMetadata })
    await this.service.appendEvent({ session, event: said })
    await this.service.appendEvent({ session, event: decided })
    return decided
  }

  /** Sets session state of a chat without a message. Writes only the values that differ. */
  async setState(chat: AppChatRef, delta: StateDelta): Promise<void> {
    if (Object.keys(delta).length === 0) return
    const session = await this.service.getOrCreateSession(toSessionKey(chat))
    const stateDelta = changesIn(session.state, delta)
    if (Object.keys(stateDelta).length === 0) return
    const customMetadata = writeNotes({ context: true })
    const actions = { stateDelta }
    const event = createEvent({ author: 'user', actions, customMetadata })
    await this.service.appendEvent({ session, event })
  }

  /** Stores results that no run produced. Returns nothing if the message does not exist any more. */
  async append(
    chat: AppChatRef,
    messageId: string,
    event: { content?: Content; notes: EventNotes },
  ): Promise<Event | undefined> {
    const session = await this.get(chat)
    const turn = session && findTurn(session.events, messageId)
    if (!session || !turn) return undefined
    const author = turn.runs.flat().at(-1)?.author ?? 'model'
    const { content, notes } = event
    const customMetadata = writeNotes({ ...notes, messageId })
    const { invocationId } = turn.firstEvent
    const stored = createEvent({
      author,
      invocationId,
      customMetadata,
      ...(content && { content }),
    })
    await this.service.appendEvent({ session, event: stored })
    return stored
  }

  /** Stores an unknown outcome for the calls that were running when their server stopped. */
  async endLostCalls(chat: AppChatRef): Promise<void> {
    const session = await this.get(chat)
    if (session) await respondToDanglingCalls(this.service, session, { isFinal: true })
  }

  /**
   * Stores the streamed text of a message that the session does not contain, because the server that wrote it has crashed. AP710: an
   * agent of a workflow that continues writes it again.
   */
  async keepStreamed(
    chat: AppChatRef,
    messageId: string,
    streamed: readonly Chunk[],
  ): Promise<void> {
    const session = await this.get(chat)
    const turn = session && findTurn(session.events, messageId)
    if (!session || !turn || repeatsReplies(turn)) return
    const parts = findUnstored(streamed, replayTurn(turn).chunks)
    if (parts.length === 0) return
    const events = turn.runs.flat()
    const { invocationId } = events.at(-1) ?? turn.firstEvent
    const author =
      events.findLast((event) => event.author !== 'user')?.author ?? (await this.#authorOf(chat))
    await storePartialReply(this.service, session, { parts, author, invocationId, messageId })
  }

  /** Whether the session service can remove messages. */
  get canRewind(): boolean {
    return isRewindable(this.service)
  }

  /** Returns the events that a rewind to before a user message would remove, or undefined if the chat does not contain the message. */
  async findCut(chat: AppChatRef, userMessageId: string): Promise<Cut | undefined> {
    const session = await this.get(chat)
    return session && cutEvents(session.events, userMessageId)
  }

  /**
   * Rewinds a chat to before a user message. Returns the end of what is left. Does nothing, and returns undefined, if the chat does not
   * contain the message: it failed before it was stored.
   */
  async rewind(chat: AppChatRef, userMessageId: string): Promise<Rewound | undefined> {
    if (!isRewindable(this.service)) throw new ProtocolError('not-rewindable')
    const { events = [] } = (await this.get(chat)) ?? {}
    const cut = cutEvents(events, userMessageId)
    if (!cut) return undefined
    const { firstEvent, kept } = cut
    const keep = kept.map(({ id }) => id)
    await this.service.rewind({ ...toSessionKey(chat), eventId: firstEvent.id, keep })
    const left = [...events.slice(0, events.indexOf(firstEvent)), ...kept]
    // The chat has no title while it contains only messages of the agent, such as a greeting.
    if (!left.some(({ author }) => author === 'user')) await this.#chats.forgetNote(chat)
    return { follows: splitTurns(left).at(-1)?.messageId }
  }
}

/** The end of a chat that was rewound. */
export interface Rewound {
  /** The last reply that is left. Undefined if there is none. */
  readonly follows: string | undefined
}

/** Returns how ADK names a chat. */
export function toSessionKey({ appName, principalId, chatId }: AppChatRef) {
  return { appName, userId: principalId, sessionId: chatId }
}
