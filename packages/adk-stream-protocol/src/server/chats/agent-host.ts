import type {
  BaseArtifactService,
  BaseCredentialService,
  BaseMemoryService,
  BasePlugin,
  BaseSessionService,
  Event,
  RunConfig,
  Session,
} from '@google/adk'
import { createEvent, isBaseAgent, Runner, StreamingMode } from '@google/adk'
import type { Content, FunctionCall } from '@google/genai'

import { hasEarlyCallbacks } from '../../agent/adk-workarounds/early-callbacks.ts'
import type { ApprovalPlugin } from '../../calls/approval-plugin.ts'
import { saysSomething } from '../../agent/history/chat-title.ts'
import type { NotedContent } from '../../agent/history/complete-input.ts'
import { toInputAnswer } from '../../agent/history/complete-input.ts'
import type { Cut } from '../../agent/history/cut-events.ts'
import { cutEvents } from '../../agent/history/cut-events.ts'
import type { EventNotes } from '../../agent/history/event-notes.ts'
import { writeNotes } from '../../agent/history/event-notes.ts'
import type { RunState, RunCause } from '../../calls/run-state.ts'
import { prepareCall } from '../../calls/prepare-call.ts'
import type { ReadConversationOptions } from '../../agent/history/read-conversation.ts'
import { readConversation } from '../../agent/history/read-conversation.ts'
import { answerDanglingCalls, keepPartialAnswer } from '../../agent/history/repair-session.ts'
import { scopeArtifacts } from '../../agent/adk-workarounds/scope-artifacts.ts'
import type { StoredTurn } from '../../agent/history/stored-turns.ts'
import { splitTurns } from '../../agent/history/stored-turns.ts'
import { toUserContent } from '../../agent/translate/user-content.ts'
import type { Approval, ApprovalChat } from '../../approvals/approval.ts'
import type { Ledger } from '../../approvals/ledger.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { Message } from '../../protocol/message.ts'
import type { MessageRequest } from '../../protocol/stream-request.ts'
import type { ChatStore } from '../../store/chat-store.ts'
import { isRewindable, readsOpenings } from '../../store/store.ts'
import type { RunOutcome } from '../../turns/run-turn.ts'
import type { RootAgent } from './chat-agents.ts'
import { readError } from '../http/read-error.ts'
import type { StateDelta } from './request-context.ts'
import { changesIn } from './request-context.ts'
import type { TurnRunConfig } from '../options.ts'

/** ADK's own services, passed on to its Runner. */
export interface AgentServices {
  readonly plugins?: readonly BasePlugin[]
  readonly artifactService?: BaseArtifactService
  readonly memoryService?: BaseMemoryService
  readonly credentialService?: BaseCredentialService
}

export interface AgentHostOptions extends AgentServices {
  /** The agents by name, each with a gate of its own. */
  readonly agents: ReadonlyMap<string, HostedAgent>
  /** Returns the name of the agent of a chat. */
  readonly agentOf: (chat: ApprovalChat) => Promise<string>
  readonly appName: string
  readonly sessions: BaseSessionService
  readonly ledger: Ledger
  readonly chats: ChatStore
  readonly runConfig?: TurnRunConfig
}

interface HostedAgent {
  readonly agent: RootAgent
  readonly gate: ApprovalPlugin
}

/** An agent as ADK runs it. */
interface RunnableAgent {
  readonly runner: Runner
  readonly gate: ApprovalPlugin
}

interface DriveOptions {
  readonly notes: EventNotes & { readonly messageId: string }
  readonly cause: RunCause
  readonly signal: AbortSignal
  /** What is set in the session state with the message. */
  readonly state?: StateDelta
  /** Called when the message that the run begins with is stored. */
  readonly onStored?: (() => void) | undefined
  /** Puts the session in order, and gives the events that come before those of the run. */
  readonly prepare: () => Promise<Event[]>
}

interface ResumeOptions extends Pick<DriveOptions, 'signal' | 'onStored'> {
  readonly content: Content
  /** What is noted beside the answers. */
  readonly notes?: EventNotes
}

/** The agents with their conversations: one ADK session per chat of a principal. */
export class AgentHost {
  readonly #agents: ReadonlyMap<string, RunnableAgent>
  readonly #agentOf: (chat: ApprovalChat) => Promise<string>
  readonly #sessions: BaseSessionService
  /** Whether no plugin may end a run, or change its message, before a tool of it is called. */
  readonly #predictable: boolean
  readonly #ledger: Ledger
  readonly #chats: ChatStore
  readonly #runConfig: RunConfig
  readonly #runs = new Set<RunState>()

  constructor(options: AgentHostOptions) {
    const {
      agents,
      agentOf,
      appName,
      sessions,
      ledger,
      chats,
      plugins = [],
      runConfig,
      ...services
    } = options
    this.#sessions = sessions
    this.#agentOf = agentOf
    this.#predictable = !plugins.some(hasEarlyCallbacks)
    this.#ledger = ledger
    this.#chats = chats
    const { maxLlmCalls = MAX_LLM_CALLS, saveInputBlobsAsArtifacts = false } = runConfig ?? {}
    this.#runConfig = { ...RUN_CONFIG, maxLlmCalls, saveInputBlobsAsArtifacts }
    const shared = { appName, sessionService: sessions, ...services }
    const runnable = ({ agent, gate }: HostedAgent): RunnableAgent => {
      return {
        runner: new Runner({ ...shared, agent, plugins: [gate, ...plugins, gate.errors] }),
        gate,
      }
    }
    this.#agents = new Map([...agents].map(([name, hosted]) => [name, runnable(hosted)]))
  }

  get sessions(): BaseSessionService {
    return this.#sessions
  }

  /** Whether a run is under way in which an approved call is run or was run, also one that its turn has left. */
  get busy(): boolean {
    return [...this.#runs].some((run) => run.decided.size > 0)
  }

  /** Whether a message may take the place of an earlier one. */
  get rewindable(): boolean {
    return isRewindable(this.#sessions)
  }

  /** Runs the agent on a new message. */
  run(
    chat: ApprovalChat,
    { message, replaces }: MessageRequest,
    {
      messageId,
      userMessageId,
      signal,
      state,
    }: { messageId: string; userMessageId: string; signal: AbortSignal; state: StateDelta },
  ): AsyncGenerator<Event> {
    const prepare = async (): Promise<Event[]> => {
      const session = await this.#sessions.getOrCreateSession(keyOf(chat))
      if (replaces) await this.#rewind(session, userMessageId)
      await answerDanglingCalls(this.#sessions, session)
      return []
    }
    const notes = { messageId, userMessageId }
    const how = { notes, cause: 'message' as const, signal, prepare, state }
    return this.#drive(chat, toUserContent(message), how)
  }

  /** Sets what differs in the session state of a chat, where no message carries it. */
  async setState(chat: ApprovalChat, delta: StateDelta): Promise<void> {
    const session = await this.#sessions.getOrCreateSession(keyOf(chat))
    const stateDelta = changesIn(session.state, delta)
    if (Object.keys(stateDelta).length === 0) return
    const customMetadata = writeNotes({ context: true })
    const actions = { stateDelta }
    const event = createEvent({ author: 'user', actions, customMetadata })
    await this.#sessions.appendEvent({ session, event })
  }

  /** Starts an approved call now; false where it must wait for ADK to come by with it. */
  async startCall(chat: ApprovalChat, approval: Approval, signal: AbortSignal): Promise<boolean> {
    if (!this.#predictable) return false
    const session = await this.#sessions.getSession(keyOf(chat))
    if (!session) return false
    const { runner, gate } = await this.#find(chat)
    const artifacts = runner.artifactService && scopeArtifacts(runner.artifactService, session)
    const around = { runner, session, artifacts, runConfig: this.#runConfig, signal }
    const call = prepareCall(approval, around)
    return call !== undefined && gate.decided.begin(call)
  }

  /** Whether a call was started so, and no run has taken its result. */
  isRunning({ id }: Approval): boolean {
    return this.#gates.some((gate) => gate.decided.hasBegun(id))
  }

  /** Resolves when a call that was started so has ended. */
  async settled({ id }: Approval): Promise<void> {
    await Promise.all(this.#gates.map((gate) => gate.decided.ended(id)))
  }

  /** Goes on with a turn, on answers to what it waited for. */
  resume(
    chat: ApprovalChat,
    messageId: string,
    { content, notes: added = {}, signal, onStored }: ResumeOptions,
  ): AsyncGenerator<Event> {
    const notes = { ...added, messageId }
    const told = createEvent({ author: 'user', content, customMetadata: writeNotes(notes) })
    // ADK stores the answers and does not yield them; clients are told of what came from outside as of any result.
    const prepare = async (): Promise<Event[]> => [told]
    return this.#drive(chat, content, { notes, cause: 'answers', signal, prepare, onStored })
  }

  /** The final result of a long-running call, in the form in which this agent reads it. */
  async toCompletion(chat: ApprovalChat, content: Content): Promise<NotedContent> {
    const toolCallId = content.parts?.[0]?.functionResponse?.id ?? ''
    // A workflow reads the response itself; only a model needs it as text.
    const session = isBaseAgent((await this.#find(chat)).runner.agent)
      ? await this.#sessions.getSession(keyOf(chat))
      : undefined
    const call = session && findCall(session.events, toolCallId)
    const answer = session && toInputAnswer(content, call)
    return answer ?? { content, notes: { completed: [toolCallId] } }
  }

  /** Stores results of a turn that no run gave. */
  async append(
    chat: ApprovalChat,
    messageId: string,
    event: { content: Content; notes: EventNotes },
  ): Promise<void> {
    const session = await this.#sessions.getSession(keyOf(chat))
    const turn = session && this.#findTurn(session, messageId)
    if (!session || !turn) return
    const author = turn.runs.flat().at(-1)?.author ?? 'model'
    const { content, notes } = event
    const customMetadata = writeNotes({ ...notes, messageId })
    const { invocationId } = turn.firstEvent
    await this.#sessions.appendEvent({
      session,
      event: createEvent({ author, invocationId, content, customMetadata }),
    })
  }

  /** Leaves the session as the next turn needs it. */
  async settle(chat: ApprovalChat, { end, unstored, paused }: RunOutcome): Promise<void> {
    if (end === 'completed' && !paused) return
    // What was written since comes from the database now, and not when the answer comes that somebody waits for.
    const session = await this.#sessions.getSession(keyOf(chat))
    if (!session || end === 'completed') return
    const marks = end === 'stopped' && unstored.invocationId !== ''
    if (marks || unstored.parts.length > 0)
      await keepPartialAnswer(this.#sessions, session, unstored)
    await answerDanglingCalls(this.#sessions, session)
  }

  /** A turn as it is stored; nothing for one that does not exist. */
  async turn(chat: ApprovalChat, messageId: string): Promise<StoredTurn | undefined> {
    const session = await this.#sessions.getSession(keyOf(chat))
    return session && this.#findTurn(session, messageId)
  }

  /** All turns of a chat as they are stored, in the order they began. */
  async turns(chat: ApprovalChat): Promise<StoredTurn[]> {
    const session = await this.#sessions.getSession(keyOf(chat))
    return session ? splitTurns(session.events) : []
  }

  /** The conversation, without the message that is still being streamed; nothing for a chat that does not exist. */
  async messages(
    chat: ApprovalChat,
    options: ReadConversationOptions,
  ): Promise<Message[] | undefined> {
    const session = await this.#sessions.getSession(keyOf(chat))
    return session && readConversation(session.events, options)
  }

  async exists(chat: ApprovalChat): Promise<boolean> {
    const session = await this.#sessions.getSession({
      ...keyOf(chat),
      config: { numRecentEvents: 1 },
    })
    return session !== undefined
  }

  /** The first event of the user in a chat. */
  async opening(chat: ApprovalChat): Promise<Event | undefined> {
    if (readsOpenings(this.#sessions)) return this.#sessions.readOpening(keyOf(chat))
    const session = await this.#sessions.getSession(keyOf(chat))
    return session?.events.find(
      ({ author, content }) => author === 'user' && saysSomething(content),
    )
  }

  async delete(chat: ApprovalChat): Promise<void> {
    await this.#sessions.deleteSession(keyOf(chat))
    await this.#chats.drop(chat)
  }

  // One generator for all of it: every one around ADK's costs each token another turn of the microtask queue.
  async *#drive(
    chat: ApprovalChat,
    newMessage: Content,
    { notes, cause, signal, prepare, onStored, state = {} }: DriveOptions,
  ): AsyncGenerator<Event> {
    const { runner, gate } = await this.#find(chat)
    const run = gate.open(chat, notes.messageId, cause)
    run.onStored = onStored
    this.#runs.add(run)
    try {
      yield* await prepare()
      const events = runner.runAsync({
        userId: chat.principalId,
        sessionId: chat.chatId,
        newMessage,
        customMetadata: writeNotes(notes),
        ...(Object.keys(state).length > 0 && { stateDelta: { ...state } }),
        runConfig: this.#runConfig,
        abortSignal: signal,
      })
      for await (const event of events) {
        if (run.loss) throw run.loss
        run.noteStored()
        if (run.hasAppended) yield* run.takeAppended()
        yield event
      }
      if (run.loss) throw run.loss
      yield* run.takeAppended()
    } catch (thrown) {
      // ADK came by with them, and a callback of the host threw before they could run.
      if (!signal.aborted)
        for (const approvalId of run.executing.values()) this.#ledger.abandon(approvalId)
      throw run.loss ?? (await this.#explain(chat, thrown))
    } finally {
      gate.close(chat, run)
      if (signal.aborted) await this.#keepLateResults(chat, run)
      await this.#ledger.markReported(chat, [...run.told])
      this.#runs.delete(run)
    }
  }

  /** What ended a run: in the first place that the chat has been taken by another process, whatever words ADK has for it. */
  async #explain(chat: ApprovalChat, thrown: unknown): Promise<ProtocolError> {
    const isHeld = await this.#ledger.stillHolds(chat).catch(() => true)
    return isHeld ? readError(thrown) : new ProtocolError('turn-lost', { cause: thrown })
  }

  /** AP23: what was approved and has run is kept, although ADK drops the results of a run that was stopped. */
  async #keepLateResults(chat: ApprovalChat, run: RunState): Promise<void> {
    for (const [id, { name, response }] of run.results) {
      const note = run.decided.get(id)
      if (!note) continue
      const content = { role: 'user', parts: [{ functionResponse: { id, name, response } }] }
      await this.append(chat, run.messageId, { content, notes: { decided: [note] } })
      run.told.add(id)
    }
  }

  /** Takes a chat back to before a message of the user. */
  async rewind(chat: ApprovalChat, userMessageId: string): Promise<void> {
    const session = await this.#sessions.getSession(keyOf(chat))
    if (session) await this.#rewind(session, userMessageId)
  }

  /** What a chat would lose if it were taken back to before a message. Undefined for a message that it does not hold. */
  async cut(chat: ApprovalChat, userMessageId: string): Promise<Cut | undefined> {
    const session = await this.#sessions.getSession(keyOf(chat))
    return session && cutEvents(session.events, userMessageId)
  }

  async #rewind(session: Session, userMessageId: string): Promise<void> {
    if (!isRewindable(this.#sessions)) throw new ProtocolError('not-rewindable')
    const cut = cutEvents(session.events, userMessageId)
    // A message that never reached the session has nothing to take back: it failed before it was stored.
    if (!cut) return
    const { appName, userId, id: sessionId } = session
    const { firstEvent, kept } = cut
    const eventId = firstEvent.id
    const keep = kept.map(({ id }) => id)
    await this.#sessions.rewind({ appName, userId, sessionId, eventId, keep })
    session.events.splice(session.events.indexOf(firstEvent), Infinity, ...kept)
    // What others said first, such as a greeting, is no beginning.
    if (session.events.some(({ author }) => author === 'user')) return
    await this.#chats.forgetNote({ appName, principalId: userId, chatId: sessionId })
  }

  /** The agent of a chat. */
  async #find(chat: ApprovalChat): Promise<RunnableAgent> {
    const found = this.#agents.get(await this.#agentOf(chat))
    if (!found) throw new ProtocolError('unknown-agent')
    return found
  }

  get #gates(): ApprovalPlugin[] {
    return [...this.#agents.values()].map(({ gate }) => gate)
  }

  #findTurn({ events }: Session, messageId: string): StoredTurn | undefined {
    return splitTurns(events).find((turn) => turn.messageId === messageId)
  }
}

/** ADK's own default is 500, and each call costs money. */
const MAX_LLM_CALLS = 100

/** Written out in full, because a tool that is started without a run of ADK's sees them too. */
const RUN_CONFIG: RunConfig = {
  streamingMode: StreamingMode.SSE,
  pauseOnToolCalls: false,
  supportCfc: false,
  enableAffectiveDialog: false,
}

function findCall(events: readonly Event[], toolCallId: string): FunctionCall | undefined {
  return events
    .flatMap(({ content }) => content?.parts ?? [])
    .find(({ functionCall }) => functionCall?.id === toolCallId)?.functionCall
}

function keyOf({ appName, principalId, chatId }: ApprovalChat) {
  return { appName, userId: principalId, sessionId: chatId }
}
