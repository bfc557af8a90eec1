import type {
  BaseArtifactService,
  BaseCredentialService,
  BaseMemoryService,
  BasePlugin,
  BaseSessionService,
  Event,
  RunnerConfig,
  Session,
} from '@google/adk'
import { Runner, StreamingMode } from '@google/adk'

import { readConversation } from '../adk/read-conversation.ts'
import { answerDanglingCalls, keepPartialAnswer } from '../adk/repair-session.ts'
import { RunGuard } from '../adk/run-guard.ts'
import type { TranslationOptions } from '../adk/translate-event.ts'
import type { TurnMarks } from '../adk/turn-marks.ts'
import { readMarks, writeMarks } from '../adk/turn-marks.ts'
import { toUserContent } from '../adk/user-content.ts'
import { ProtocolError } from '../protocol/errors.ts'
import type { Message } from '../protocol/message.ts'
import type { StreamRequest } from '../protocol/stream-request.ts'
import { isRewindable } from '../store/store.ts'
import type { RunOutcome } from '../turns/run-turn.ts'
import type { ChatKey } from '../turns/turns.ts'
import { readError } from './front-door.ts'

/** ADK's own services, passed on to its Runner. */
export interface AgentServices {
  readonly plugins?: readonly BasePlugin[]
  readonly artifactService?: BaseArtifactService
  readonly memoryService?: BaseMemoryService
  readonly credentialService?: BaseCredentialService
}

export interface AgentHostOptions extends AgentServices {
  readonly agent: NonNullable<RunnerConfig['agent']>
  readonly appName: string
  readonly sessions: BaseSessionService
  readonly onError: (error: unknown) => void
}

/** The agent with its conversations: one ADK session per chat of a principal. */
export class AgentHost {
  readonly #runner: Runner
  readonly #sessions: BaseSessionService
  readonly #appName: string

  constructor({ agent, appName, sessions, onError, plugins = [], ...services }: AgentHostOptions) {
    this.#appName = appName
    this.#sessions = sessions
    const guard = new RunGuard({ onError })
    this.#runner = new Runner({
      agent,
      appName,
      sessionService: sessions,
      plugins: [guard, ...plugins],
      ...services,
    })
  }

  /** Whether a message may take the place of an earlier one. */
  get rewindable(): boolean {
    return isRewindable(this.#sessions)
  }

  /** Runs the agent on a new message. */
  async *run(
    chat: ChatKey,
    { message, replaces }: StreamRequest,
    { marks, signal }: { marks: TurnMarks; signal: AbortSignal },
  ): AsyncGenerator<Event> {
    try {
      const session = await this.#sessions.getOrCreateSession(this.#key(chat))
      if (replaces) await this.#rewind(session, marks.userMessageId)
      await answerDanglingCalls(this.#sessions, session)
      yield* this.#runner.runAsync({
        userId: chat.principalId,
        sessionId: chat.chatId,
        newMessage: toUserContent(message),
        customMetadata: writeMarks(marks),
        runConfig: { streamingMode: StreamingMode.SSE },
        abortSignal: signal,
      })
    } catch (thrown) {
      throw readError(thrown)
    }
  }

  /** Leaves the session as the next turn needs it. */
  async settle(chat: ChatKey, { end, unstored }: RunOutcome): Promise<void> {
    if (end === 'completed') return
    const session = await this.#sessions.getSession(this.#key(chat))
    if (!session) return
    const marks = end === 'stopped' && unstored.invocationId !== ''
    if (marks || unstored.parts.length > 0)
      await keepPartialAnswer(this.#sessions, session, unstored)
    await answerDanglingCalls(this.#sessions, session)
  }

  /** The conversation, without the message that is still being streamed; nothing for a chat that does not exist. */
  async messages(
    chat: ChatKey,
    options: TranslationOptions & { readonly unfinished: string | undefined },
  ): Promise<Message[] | undefined> {
    const session = await this.#sessions.getSession(this.#key(chat))
    return session && readConversation(session.events, options)
  }

  async delete(chat: ChatKey): Promise<void> {
    await this.#sessions.deleteSession(this.#key(chat))
  }

  async #rewind(session: Session, userMessageId: string): Promise<void> {
    if (!isRewindable(this.#sessions)) throw new ProtocolError('not-rewindable')
    const index = session.events.findLastIndex(
      (event) => readMarks(event)?.userMessageId === userMessageId,
    )
    const event = session.events[index]
    // A message that never reached the session has nothing to take back: it failed before it was stored.
    if (!event) return
    const { appName, userId, id: sessionId } = session
    await this.#sessions.rewind({ appName, userId, sessionId, eventId: event.id })
    session.events.length = index
  }

  #key({ principalId, chatId }: ChatKey) {
    return { appName: this.#appName, userId: principalId, sessionId: chatId }
  }
}
