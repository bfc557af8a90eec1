import type {
  BasePlugin,
  BaseSessionService,
  Event,
  GetSessionRequest,
  RunConfig,
  Session,
} from '@google/adk'
import { Runner, StreamingMode, createEvent, isBaseAgent } from '@google/adk'
import type { Content } from '@google/genai'

import type { AgentServices } from '../../../agent/agent-services.ts'
import { intercept, scopeArtifacts } from '../../../agent/adk-workarounds/session-services.ts'
import { repairModelCalls } from '../../../agent/adk-workarounds/model-call-ids.ts'
import {
  completeRecoveries,
  hasEarlyCallbacks,
  skipTokenCallbacks,
  keepPluginErrors,
} from '../../../agent/adk-workarounds/plugin-callbacks.ts'
import type { EventNotes } from '../../../agent/events/event-notes.ts'
import { writeNotes } from '../../../agent/events/event-notes.ts'
import type { NotedContent } from '../../../agent/events/input-calls.ts'
import { toInputResponse } from '../../../agent/events/input-calls.ts'
import { endUncontinued, respondToDanglingCalls } from '../../../agent/tree/interrupted-turn.ts'
import type { ToolCall } from '../../../agent/tool-call.ts'
import { findCall } from '../../../agent/tool-call.ts'
import { toUserContent } from '../../../agent/user-message.ts'
import type { Approval, Refusal } from '../../../approvals/approval.ts'
import { isRefusal } from '../../../approvals/approval.ts'
import type { Ledger } from '../../../approvals/ledger.ts'
import type { Decision } from '../../../approvals/next-approval.ts'
import type { ApprovalPlugin } from '../../../calls/approval-plugin.ts'
import { prepareCall, toClaim } from '../../../calls/approved-call.ts'
import type { CallKinds } from '../../../calls/call-kind.ts'
import { isOutdated } from '../../../calls/outdated-calls.ts'
import type { RunCause, RunState } from '../../../calls/run-state.ts'
import { withShown } from '../../../calls/run-state.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { MessageRequest } from '../../../protocol/stream-request.ts'
import type { AppChatRef } from '../../../shared/chat-ref.ts'
import type { RootAgent } from '../chat-agents.ts'
import type { ChatSessions } from '../chat-sessions.ts'
import { toSessionKey } from '../chat-sessions.ts'
import type { StateDelta } from '../request-context.ts'
import { type ReplacingMessage, RunEndings, storeUnanswered } from './run-endings.ts'
import type { DecidedCallRef } from './stored-calls.ts'

/**
 * The part of ADK's `RunConfig` that an application may set for a turn.
 *
 * @inline
 */
export interface TurnRunConfig {
  /** The maximum number of model calls for one request. A turn that reaches it ends with an error. Default 100. */
  readonly maxLlmCalls?: number
  /**
   * Whether ADK stores the files of a message as artifacts and sends their names to the model instead of their content. Stored
   * messages then contain the names. Needs `artifactService`. Default false.
   */
  readonly saveInputBlobsAsArtifacts?: boolean
}

export interface AgentHostOptions extends AgentServices {
  /** The agents by name, each with its approval plugin. */
  readonly agents: ReadonlyMap<string, HostedAgent>
  /** Returns the name of the agent of a chat. */
  readonly agentOf: (chat: AppChatRef) => Promise<string>
  readonly appName: string
  readonly sessions: ChatSessions
  readonly ledger: Ledger
  readonly kinds: CallKinds
  readonly runConfig?: TurnRunConfig
  readonly onError: (error: unknown) => void
  /** Called for a decided call whose result could not be stored at the end of its run. */
  readonly onLeft: (call: DecidedCallRef, error: unknown) => void
}

interface HostedAgent {
  readonly agent: RootAgent
  readonly gate: ApprovalPlugin
}

/** An agent with its ADK `Runner`. */
interface RunnableAgent {
  readonly runner: Runner
  readonly gate: ApprovalPlugin
}

interface RunOptions {
  readonly messageId: string
  readonly userMessageId: string
  /** Session state to set with the message. */
  readonly state: StateDelta
  /** The session, if it was read when the chat was locked. */
  readonly session: Session | undefined
  readonly signal: AbortSignal
}

/** What is stored with a message that has replaced stored ones and was not stored itself. */
export type UnsentReplacement = Omit<ReplacingMessage, 'content' | 'author'>

interface DriveOptions {
  readonly notes: EventNotes & { readonly messageId: string }
  readonly cause: RunCause
  readonly signal: AbortSignal
  /** Session state to set with the message. */
  readonly stateDelta?: Record<string, unknown>
  /** Called when ADK has stored the message that starts the run. */
  readonly onStored?: (() => void) | undefined
  /** Called when results of approved calls were stored after the run was stopped. */
  readonly onLateResults?: () => void
  /** Repairs the session. Returns it, if ADK need not read it again. */
  readonly prepare?: () => Promise<Session | undefined>
  /** An event to yield before those of the run. */
  readonly first?: Event
}

interface ResumeOptions extends Pick<DriveOptions, 'signal' | 'onStored' | 'onLateResults'> {
  readonly content: Content
  /** Notes to store with the responses. */
  readonly notes?: EventNotes
}

/** Runs the agents with ADK's `Runner`, on the sessions of the chats. */
export class AgentHost {
  readonly endings: RunEndings
  readonly #agents: ReadonlyMap<string, RunnableAgent>
  readonly #agentOf: (chat: AppChatRef) => Promise<string>
  readonly #sessions: ChatSessions
  /** Whether no plugin can end a run or change its message before a tool is called. */
  readonly #predictable: boolean
  readonly #ledger: Ledger
  readonly #onError: (error: unknown) => void
  readonly #onLeft: AgentHostOptions['onLeft']
  readonly #runConfig: RunConfig
  /** Whether events can be shown while a call runs. */
  readonly #asksDuringCalls: boolean
  /** Sessions of runs that start: session id → session. The chat is locked, so ADK need not read them again. */
  readonly #prepared = new Map<string, Session>()

  constructor({
    agents,
    agentOf,
    appName,
    sessions,
    ledger,
    kinds,
    onError,
    onLeft,
    plugins = [],
    runConfig: { maxLlmCalls = MAX_LLM_CALLS, saveInputBlobsAsArtifacts = false } = {},
    ...services
  }: AgentHostOptions) {
    this.endings = new RunEndings(sessions, ledger)
    this.#sessions = sessions
    this.#agentOf = agentOf
    this.#predictable = !plugins.some(hasEarlyCallbacks)
    this.#ledger = ledger
    this.#asksDuringCalls = kinds.askedDuringCalls.length > 0
    this.#onError = onError
    this.#onLeft = onLeft
    this.#runConfig = { ...RUN_CONFIG, maxLlmCalls, saveInputBlobsAsArtifacts }
    const getSession: BaseSessionService['getSession'] = async (request) =>
      this.#takePrepared(request) ?? sessions.service.getSession(request)
    const sessionService = this.endings.observe(intercept(sessions.service, { getSession }))
    const shared = { appName, sessionService, ...services }
    this.#agents = new Map(
      Array.from(agents, ([name, { agent, gate }]) => {
        const runner = new Runner({ ...shared, agent, plugins: [gate, ...plugins, gate.errors] })
        installWorkarounds(runner, { gate, plugins })
        return [name, { runner, gate }]
      }),
    )
  }

  /** Whether a run with an approved call is active, even if its turn was stopped. */
  get busy(): boolean {
    return this.endings.hasDecidedRuns
  }

  /** Runs the agent on a new message. */
  run(
    chat: AppChatRef,
    { message }: MessageRequest,
    { messageId, userMessageId, signal, state, session: read }: RunOptions,
  ): AsyncGenerator<Event> {
    const prepare = async (): Promise<Session | undefined> => {
      const session = read ?? (await this.#sessions.getOrCreateLocked(chat))
      await respondToDanglingCalls(this.#sessions.service, session)
      await endUncontinued(this.#sessions.service, session)
      return session
    }
    return this.#drive(chat, toUserContent(message), {
      notes: { messageId, userMessageId },
      cause: 'message',
      signal,
      prepare,
      ...(Object.keys(state).length > 0 && { stateDelta: { ...state } }),
    })
  }

  /** TU900: keeps a message whose turn was stopped before the agent had begun to reply. */
  async keepStopped(
    chat: AppChatRef,
    { message }: MessageRequest,
    sent: Omit<RunOptions, 'signal' | 'session'>,
  ): Promise<void> {
    const author = (await this.#find(chat)).runner.agent.name
    const content = toUserContent(message)
    await storeUnanswered(this.#sessions, chat, { ...sent, content, author })
  }

  /** TU1990: keeps a message that has replaced stored ones, and whose turn has ended before it was stored. */
  async keepReplacement(
    chat: AppChatRef,
    { message }: Pick<MessageRequest, 'message'>,
    sent: UnsentReplacement,
    { isLocked }: { readonly isLocked: boolean },
  ): Promise<void> {
    const author = (await this.#find(chat)).runner.agent.name
    const replacement = { ...sent, content: toUserContent(message), author }
    if (isLocked) await this.endings.storeReplacement(chat, replacement)
    else this.endings.storeReplacementLater(chat, replacement)
  }

  /** Starts an approved call without a run of ADK. Returns false if the call must wait for ADK. */
  async startCall(approval: Approval, signal: AbortSignal): Promise<boolean> {
    const { runner, gate } = await this.#find(approval.chat)
    const call = await this.#prepareCall(approval, runner, signal)
    return call !== undefined && gate.runner.startAtDecision(call, approval)
  }

  /**
   * Records a decision that completes an approval. Claims and starts the call in the same commit, unless the call must
   * wait for ADK.
   */
  async decide(
    approval: Approval,
    decision: Decision,
    signal: AbortSignal,
  ): Promise<Approval | Refusal> {
    const { runner, gate } = await this.#find(approval.chat)
    const call = await this.#prepareCall(approval, runner, signal)
    // A call that is outdated is cancelled when ADK resumes it.
    if (!call || isOutdated(approval, call.tool, decision.editedArgs))
      return this.#ledger.decide(approval.id, decision, approval)
    const result = await this.#ledger.decideAndClaim(approval, decision, toClaim(call))
    if (isRefusal(result)) return result
    if (result.claimed) gate.runner.start(call, result.claimed)
    return result.decided
  }

  /** Prepares a call to run without ADK. Returns undefined if only ADK can run it. */
  async #prepareCall(
    approval: Approval,
    runner: Runner,
    signal: AbortSignal,
  ): Promise<ToolCall | undefined> {
    if (!this.#predictable) return undefined
    const session = await this.#sessions.getLocked(approval.chat)
    if (!session) return undefined
    const artifacts = runner.artifactService && scopeArtifacts(runner.artifactService, session)
    return prepareCall(approval, { runner, session, artifacts, runConfig: this.#runConfig, signal })
  }

  /** Prepares a call of the live model of an agent. */
  prepareOutsideAdk(agentName: string, call: ToolCall, outer: RunState): void {
    const { runner, gate } = this.#agents.get(agentName) ?? {}
    if (runner) gate?.prepareOutsideAdk(call, outer, runner.pluginManager)
  }

  /** Whether a call was started with `startCall` and no run has collected its result. */
  isRunning({ id }: Approval): boolean {
    return this.#gates.some((gate) => gate.runner.isRunning(id))
  }

  /** Resolves when a call that was started with `startCall` has ended. */
  async settled({ id }: Approval): Promise<void> {
    await Promise.all(this.#gates.map((gate) => gate.runner.settled(id)))
  }

  /** Resumes a turn with responses. */
  resume(
    chat: AppChatRef,
    messageId: string,
    { content, notes: added = {}, ...how }: ResumeOptions,
  ): AsyncGenerator<Event> {
    const notes = { ...added, messageId }
    // ADK stores the responses but does not yield them. Clients receive them like any tool result.
    const first = createEvent({ author: 'user', content, customMetadata: writeNotes(notes) })
    return this.#drive(chat, content, { ...how, notes, cause: 'responses', first })
  }

  /** Converts the final result of a long-running call to the form that the agent of the chat reads. */
  async toCompletion(chat: AppChatRef, content: Content): Promise<NotedContent> {
    const toolCallId = content.parts?.[0]?.functionResponse?.id ?? ''
    // A workflow reads the function response itself. Only a model needs text.
    const session = isBaseAgent((await this.#find(chat)).runner.agent)
      ? await this.#sessions.get(chat)
      : undefined
    const answer = session && toInputResponse(content, findCall(session.events, toolCallId))
    return answer ?? { content, notes: { completed: [toolCallId] } }
  }

  // A single generator: every additional one would cost each token another microtask.
  async *#drive(
    chat: AppChatRef,
    newMessage: Content,
    { notes, cause, signal, prepare, first, onStored, onLateResults, stateDelta }: DriveOptions,
  ): AsyncGenerator<Event> {
    const { runner, gate } = await this.#find(chat)
    const run = gate.runs.open(chat, notes.messageId, cause)
    run.onStored = onStored
    this.endings.add(chat, run, onLateResults)
    try {
      const session = await prepare?.()
      if (session) this.#prepared.set(session.id, session)
      if (first) yield first
      const events = runner.runAsync({
        userId: chat.principalId,
        sessionId: chat.chatId,
        newMessage,
        customMetadata: writeNotes(notes),
        ...(stateDelta && { stateDelta }),
        runConfig: this.#runConfig,
        abortSignal: signal,
      })
      for await (const event of this.#asksDuringCalls ? withShown(events, run) : events) {
        run.throwIfLost()
        if (event) run.markStored()
        if (run.hasAppended) yield* run.takeAppended()
        if (event) yield event
      }
      run.throwIfLost()
      yield* run.takeAppended()
    } catch (thrown) {
      const { error, results } = await this.endings.fail(chat, run, { signal, thrown })
      // AP825: no turn reports that a run that was stopped has lost the outcome of a call. A sweep continues it.
      if (signal.aborted) this.#leaveDecided(chat, run, error)
      yield* results
      throw error
    } finally {
      this.#takePrepared(toSessionKey(chat))
      gate.runs.close(chat, run)
      // AP825: this does not change how the turn has ended. A sweep stores what is missing.
      await this.endings.end(chat, run, signal).catch((error: unknown) => {
        this.#onError(error)
        this.#leaveDecided(chat, run, error)
      })
    }
  }

  #leaveDecided(chat: AppChatRef, run: RunState, error: unknown): void {
    for (const { decided } of run.all)
      for (const { toolCallId } of decided.values()) this.#onLeft({ chat, toolCallId }, error)
  }

  /** Returns the agent of a chat. */
  async #find(chat: AppChatRef): Promise<RunnableAgent> {
    const found = this.#agents.get(await this.#agentOf(chat))
    if (!found) throw new ProtocolError('unknown-agent')
    return found
  }

  #takePrepared({ appName, userId, sessionId }: GetSessionRequest): Session | undefined {
    const session = this.#prepared.get(sessionId)
    if (session?.userId !== userId || session.appName !== appName) return undefined
    this.#prepared.delete(sessionId)
    return session
  }

  get #gates(): ApprovalPlugin[] {
    return [...this.#agents.values()].map(({ gate }) => gate)
  }
}

/** ADK's default is 500. Each call costs money. */
const MAX_LLM_CALLS = 100

/** Includes ADK's defaults, because a tool that starts without a run of ADK also sees this configuration. */
const RUN_CONFIG: RunConfig = {
  streamingMode: StreamingMode.SSE,
  pauseOnToolCalls: false,
  supportCfc: false,
  enableAffectiveDialog: false,
}

/** Installs the workarounds for ADK on the runner of an agent. */
function installWorkarounds(
  runner: Runner,
  { gate, plugins }: { readonly gate: ApprovalPlugin; readonly plugins: readonly BasePlugin[] },
): void {
  const { pluginManager } = runner
  keepPluginErrors(pluginManager)
  completeRecoveries(pluginManager)
  skipTokenCallbacks(pluginManager, plugins, (event) => gate.noteToken(event))
  repairModelCalls(pluginManager)
  gate.agents.control(runner)
}
