import type {
  BaseArtifactService,
  BaseCredentialService,
  BaseMemoryService,
  BasePlugin,
  BaseSessionService,
  Event,
  GetSessionRequest,
  RunConfig,
  Session,
} from '@google/adk'
import { Runner, StreamingMode, createEvent, isBaseAgent } from '@google/adk'
import type { Content } from '@google/genai'

import { intercept, scopeArtifacts } from '../../../agent/adk-workarounds/session-services.ts'
import { repairModelCalls } from '../../../agent/adk-workarounds/model-call-ids.ts'
import {
  hasEarlyCallbacks,
  skipTokenCallbacks,
  keepPluginErrors,
} from '../../../agent/adk-workarounds/plugin-callbacks.ts'
import { relayRemoteAgents } from '../../../agent/adk-workarounds/remote-agents.ts'
import { controlNodes } from '../../../agent/adk-workarounds/run-nodes.ts'
import { controlSteps } from '../../../agent/adk-workarounds/run-steps.ts'
import type { EventNotes } from '../../../agent/history/event-notes.ts'
import { writeNotes } from '../../../agent/history/event-notes.ts'
import type { NotedContent } from '../../../agent/history/input-calls.ts'
import { toInputResponse } from '../../../agent/history/input-calls.ts'
import {
  canBeContinued,
  createFailureEvent,
  respondToDanglingCalls,
  storePartialReply,
} from '../../../agent/history/interrupted-turn.ts'
import { findTurn, splitTurns } from '../../../agent/history/replay-turn.ts'
import type { ToolCall } from '../../../agent/tool-call.ts'
import { findCall } from '../../../agent/tool-call.ts'
import { toUserContent } from '../../../agent/user-message.ts'
import type { Approval, Refusal } from '../../../approvals/approval.ts'
import { isRefusal } from '../../../approvals/approval.ts'
import type { Ledger } from '../../../approvals/ledger.ts'
import type { Decision } from '../../../approvals/next-approval.ts'
import type { ApprovalPlugin } from '../../../calls/approval-plugin.ts'
import { prepareCall, toClaim } from '../../../calls/approved-call.ts'
import { REMOTE_CALL, findWaitingTasks } from '../../../calls/remote-questions.ts'
import { cancelTasks } from '../../../calls/remote-runs.ts'
import type { RunCause, RunState } from '../../../calls/run-state.ts'
import { withShown } from '../../../calls/run-state.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { MessageRequest } from '../../../protocol/stream-request.ts'
import { type AppChatRef, toChatKey } from '../../../shared/chat-ref.ts'
import type { RunOutcome } from '../../../turns/run-turn.ts'
import { isClosing } from '../../../turns/turn.ts'
import { findStoreError, isStoreFailure, readError } from '../../http/exchange.ts'
import type { RootAgent } from '../chat-agents.ts'
import type { ChatSessions } from '../chat-sessions.ts'
import { toSessionKey } from '../chat-sessions.ts'
import { findRemoteAgent } from '../find-tool.ts'
import type { StateDelta } from '../request-context.ts'
import {
  RunAppends,
  hasStoredReply,
  isKept,
  storeStopped,
  storeLateResults,
  storeResults,
} from './stopped-runs.ts'

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

/** ADK services that the bridge passes to ADK's `Runner`. */
export interface AgentServices {
  /** ADK plugins. They run after the plugin that handles approvals. */
  readonly plugins?: readonly BasePlugin[]
  /** Stores artifacts. Clients read them with `GET /chats/:chatId/artifacts/:name`. */
  readonly artifactService?: BaseArtifactService
  /** Stores the memory of agents. */
  readonly memoryService?: BaseMemoryService
  /** Stores the credentials of tools. */
  readonly credentialService?: BaseCredentialService
}

export interface AgentHostOptions extends AgentServices {
  /** The agents by name, each with its approval plugin. */
  readonly agents: ReadonlyMap<string, HostedAgent>
  /** Returns the name of the agent of a chat. */
  readonly agentOf: (chat: AppChatRef) => Promise<string>
  readonly appName: string
  readonly sessions: ChatSessions
  readonly ledger: Ledger
  readonly runConfig?: TurnRunConfig
  readonly onError: (error: unknown) => void
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
  readonly #agents: ReadonlyMap<string, RunnableAgent>
  readonly #agentOf: (chat: AppChatRef) => Promise<string>
  readonly #sessions: ChatSessions
  /** Whether no plugin can end a run or change its message before a tool is called. */
  readonly #predictable: boolean
  readonly #ledger: Ledger
  readonly #onError: (error: unknown) => void
  readonly #runConfig: RunConfig
  /** The runs of each chat that have not ended, even if their turns have. Each value is called when results are stored after the turn was stopped. */
  readonly #runs = new Map<string, Map<RunState, (() => void) | undefined>>()
  readonly #appends = new RunAppends()
  /** Requests to remote agents to cancel tasks. */
  readonly #cancelling = new Set<Promise<void>>()
  /** Sessions of runs that start: session id → session. The chat is locked, so ADK need not read them again. */
  readonly #prepared = new Map<string, Session>()

  constructor({
    agents,
    agentOf,
    appName,
    sessions,
    ledger,
    onError,
    plugins = [],
    runConfig: { maxLlmCalls = MAX_LLM_CALLS, saveInputBlobsAsArtifacts = false } = {},
    ...services
  }: AgentHostOptions) {
    this.#sessions = sessions
    this.#agentOf = agentOf
    this.#predictable = !plugins.some(hasEarlyCallbacks)
    this.#ledger = ledger
    this.#onError = onError
    this.#runConfig = { ...RUN_CONFIG, maxLlmCalls, saveInputBlobsAsArtifacts }
    const getSession: BaseSessionService['getSession'] = async (request) =>
      this.#takePrepared(request) ?? sessions.service.getSession(request)
    const sessionService = this.#appends.observe(intercept(sessions.service, { getSession }))
    const shared = { appName, sessionService, ...services }
    const runnable = ({ agent, gate }: HostedAgent): RunnableAgent => {
      const runner = new Runner({ ...shared, agent, plugins: [gate, ...plugins, gate.errors] })
      keepPluginErrors(runner.pluginManager)
      skipTokenCallbacks(runner.pluginManager, plugins, (event) => gate.noteToken(event))
      repairModelCalls(runner.pluginManager)
      const findMessageId = gate.messageIdOf.bind(gate)
      controlSteps(agent, runner.pluginManager, findMessageId)
      relayRemoteAgents(runner.pluginManager, gate.runRemote)
      const isHeld = gate.isHeld.bind(gate)
      controlNodes(runner.agent, runner.pluginManager, { findMessageId, isHeld })
      return { runner, gate }
    }
    this.#agents = new Map([...agents].map(([name, hosted]) => [name, runnable(hosted)]))
  }

  /** Whether a run with an approved call is active, even if its turn was stopped, or a task of a remote agent is being cancelled. */
  get busy(): boolean {
    if (this.#cancelling.size > 0) return true
    return [...this.#runs.values()].some((runs) =>
      [...runs.keys()].some((run) => run.all.some(({ decided }) => decided.size > 0)),
    )
  }

  /** Runs the agent on a new message. */
  run(
    chat: AppChatRef,
    { message, replaces }: MessageRequest,
    {
      messageId,
      userMessageId,
      signal,
      state,
      session: read,
    }: {
      messageId: string
      userMessageId: string
      signal: AbortSignal
      state: StateDelta
      /** The session, if it was read when the chat was locked. */
      session: Session | undefined
    },
  ): AsyncGenerator<Event> {
    const prepare = async (): Promise<Session | undefined> => {
      const session = read ?? (await this.#sessions.getOrCreateLocked(chat))
      const isRewound = replaces && (await this.#sessions.rewindSession(session, userMessageId))
      await respondToDanglingCalls(this.#sessions.service, session)
      // A rewind also changes the state of the session.
      return isRewound ? undefined : session
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
    sent: { messageId: string; userMessageId: string; state: StateDelta },
  ): Promise<void> {
    const author = (await this.#find(chat)).runner.agent.name
    await storeStopped(this.#sessions, chat, { ...sent, content: toUserContent(message), author })
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
    if (!call) return this.#ledger.decide(approval.id, decision, approval)
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

  /** Runs the agent of an `AgentTool` that the live model of an agent called. Does nothing for any other tool. */
  nestLive(agentName: string, call: ToolCall, outer: RunState): void {
    const { runner, gate } = this.#agents.get(agentName) ?? {}
    if (runner) gate?.nestLive(call, outer, runner.pluginManager)
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

  /** Repairs the session after a run for the next turn. `isLeft`: another server may continue the turn. */
  async settle(chat: AppChatRef, outcome: RunOutcome, isLeft = false): Promise<void> {
    if (outcome.end !== 'completed') return this.#repair(chat, outcome, isLeft)
    this.#appends.forget(chat)
    // Loads the session into the cache now, before a response arrives that a person waits for.
    if (outcome.paused) await this.#sessions.get(chat)
  }

  /** Stores what a run that was stopped or has failed left unstored. */
  async #repair(chat: AppChatRef, outcome: RunOutcome, isLeft: boolean): Promise<void> {
    const { end, unstored } = outcome
    outcome.newest ??= await this.#appends.settled(chat)
    if (end === 'stopped') await this.#storeUntaken(chat, unstored.messageId, isLeft)
    const session = await this.#sessions.get(chat)
    if (!session) return
    const { service } = this.#sessions
    const turn = findTurn(session.events, unstored.messageId)
    // TU330: ADK may have stored the whole reply when the turn was stopped.
    const isStored = hasStoredReply(session, outcome)
    const parts = isStored ? [] : unstored.parts
    const isContinuable = turn !== undefined && canBeContinued(turn)
    const continues = isLeft && isContinuable
    const marks = end === 'stopped' && unstored.invocationId !== '' && !continues
    if (marks || parts.length > 0) await storePartialReply(service, session, { ...unstored, parts })
    // TU881: of a reply without text, only an error remains, unless the turn continues later.
    if (parts.length > 0 || (!isStored && !isContinuable))
      await this.#storeFailure(session, outcome)
    await respondToDanglingCalls(service, session)
  }

  /** TU883: settles a run whose session could not be repaired at first. If a newer message was stored meanwhile, stores only the error. */
  async settleLate(chat: AppChatRef, outcome: RunOutcome, isLeft: boolean): Promise<void> {
    const session = await this.#sessions.get(chat)
    if (!session) return
    const { unstored } = outcome
    const newest = splitTurns(session.events).at(-1)
    if (newest?.messageId !== unstored.messageId) return this.#storeFailure(session, outcome)
    const parts = isKept(newest, unstored) ? [] : unstored.parts
    await this.settle(chat, { ...outcome, unstored: { ...unstored, parts } }, isLeft)
  }

  /** TU871: stores the error of a reply that could not be stored at first. ADK stores the other errors. */
  async #storeFailure(session: Session, { state: { error }, unstored }: RunOutcome): Promise<void> {
    if (!error || !isStoreFailure(error.code)) return
    const event = createFailureEvent(unstored.messageId, unstored.author, error)
    await this.#sessions.service.appendEvent({ session, event })
  }

  /** AP850: stores the results of a stopped run that has not ended, because a callback of the application hangs after its calls. */
  async #storeUntaken(chat: AppChatRef, messageId: string, isLeft: boolean): Promise<void> {
    for (const [run, onLateResults] of this.#runs.get(toChatKey(chat)) ?? []) {
      if (run.messageId !== messageId) continue
      const before = run.endingsStored.size
      await storeLateResults(this.#sessions, chat, { run, isLeft, hasEnded: false })
      if (run.endingsStored.size === before) continue
      if (!isLeft) await this.#ledger.markReported(chat, [...run.endingsStored])
      onLateResults?.()
    }
  }

  /**
   * Cancels the tasks of remote agents whose questions these calls represent, and that do not continue. Resolves when the tasks are
   * known; the chat may be deleted then. Errors are reported.
   */
  async cancelRemoteTasks(
    chat: AppChatRef,
    calls: readonly { readonly toolCallId: string }[],
  ): Promise<void> {
    const ids = calls.map(({ toolCallId }) => toolCallId).filter((id) => id.startsWith(REMOTE_CALL))
    if (ids.length === 0) return
    const { runner } = await this.#find(chat)
    const session = await this.#sessions.get(chat)
    const tasks = findWaitingTasks(session?.events ?? [], new Set(ids))
    const findAgent = (name: string) => findRemoteAgent(runner.agent, name)
    const cancelled = cancelTasks(tasks, findAgent, this.#onError).finally(() =>
      this.#cancelling.delete(cancelled),
    )
    this.#cancelling.add(cancelled)
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
    this.#addRun(chat, run, onLateResults)
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
      for await (const event of gate.elicits ? withShown(events, run) : events) {
        run.throwIfLost()
        if (event) run.markStored()
        if (run.hasAppended) yield* run.takeAppended()
        if (event) yield event
      }
      run.throwIfLost()
      yield* run.takeAppended()
    } catch (thrown) {
      const { error, results } = await this.#endFailed(chat, run, { signal, thrown })
      yield* results
      throw error
    } finally {
      this.#takePrepared(toSessionKey(chat))
      gate.runs.close(chat, run)
      // AP852: this does not change how the turn has ended. A sweep stores what is missing.
      await this.#reportEndings(chat, run, signal).catch(this.#onError)
      this.#removeRun(chat, run)
      if (signal.aborted && run.endingsStored.size > 0) onLateResults?.()
    }
  }

  #addRun(chat: AppChatRef, run: RunState, onLateResults: (() => void) | undefined): void {
    const key = toChatKey(chat)
    const runs = this.#runs.get(key) ?? new Map<RunState, (() => void) | undefined>()
    this.#runs.set(key, runs.set(run, onLateResults))
  }

  #removeRun(chat: AppChatRef, run: RunState): void {
    const key = toChatKey(chat)
    const runs = this.#runs.get(key)
    runs?.delete(run)
    if (runs?.size === 0) this.#runs.delete(key)
  }

  /** Returns the error that ended a run, and the results of approved calls that had run before. */
  async #endFailed(
    chat: AppChatRef,
    run: RunState,
    { signal, thrown }: { readonly signal: AbortSignal; readonly thrown: unknown },
  ): Promise<{ readonly error: ProtocolError; readonly results: readonly Event[] }> {
    // ADK called these tools, and a callback of the application threw before they could run.
    if (!signal.aborted) run.abandonCalls(this.#ledger)
    const loss = run.loss ?? (await this.#ledger.locks.findLoss(chat, thrown))
    const error = readError(loss ?? findStoreError(thrown))
    // AP802: a callback after the calls may have thrown.
    const isOurs = !signal.aborted && error.code !== 'turn-lost'
    const results = isOurs
      ? await storeResults(this.#sessions, chat, run).catch((): Event[] => [])
      : []
    return { error, results }
  }

  /** Stores the results that a stopped run left, and records which outcomes the conversation shows. */
  async #reportEndings(chat: AppChatRef, run: RunState, signal: AbortSignal): Promise<void> {
    // AP661: another server checks whether the agent has continued with the outcome. The agents inside continue there.
    const isLeft = isClosing(signal) && run.cause === 'responses'
    if (signal.aborted)
      await storeLateResults(this.#sessions, chat, { run, isLeft, hasEnded: true })
    if (!isLeft) await this.#ledger.markReported(chat, [...run.endingsStored])
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
