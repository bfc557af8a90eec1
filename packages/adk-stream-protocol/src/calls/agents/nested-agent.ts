import { randomUUID } from 'node:crypto'

import type {
  AppendEventRequest,
  BaseAgent,
  BaseArtifactService,
  Context,
  Event,
  ListSessionsResponse,
  PluginManager,
  Session,
} from '@google/adk'
import {
  BaseSessionService,
  Runner,
  State,
  createEvent,
  createSession,
  isFinalResponse,
  isLlmAgent,
} from '@google/adk'
import type { Content } from '@google/genai'

import { toError, wrapRun } from '../../agent/adk-workarounds/guard-tool.ts'
import { describeEnding, PENDING_INSIDE } from '../../agent/call-responses.ts'
import { toEndingEvent } from '../../agent/events/approval-notes.ts'
import type { PausedNote } from '../../agent/events/event-notes.ts'
import { readNotes, writeNotes } from '../../agent/events/event-notes.ts'
import { renameAnsweredCalls } from '../../agent/events/input-calls.ts'
import { listQuestions, readOpenQuestions } from '../../agent/history/open-questions.ts'
import { inheritServices } from '../../agent/agent-services.ts'
import type { ToolCall } from '../../agent/tool-call.ts'
import { chatOf } from '../../agent/tool-call.ts'
import { isDecided } from '../../approvals/approval.ts'
import type { Ledger } from '../../approvals/ledger.ts'
import type { RunRegistry, RunState } from '../run-state.ts'
import { storeNote } from '../run-state.ts'
import type { NestedPlace } from './nested-run.ts'
import { NestedRun } from './nested-run.ts'
import { CONFIRMATION_TOOL } from '../../protocol/message.ts'

export interface NestedAgentOptions {
  readonly agent: BaseAgent
  /** The run that calls the agent. */
  readonly outer: RunState
  /** Whether the call can wait for approvals inside. */
  readonly canWait: boolean
  /** The pause that the call resumes after. Undefined for a new call. */
  readonly pause: PausedNote | undefined
  readonly ledger: Ledger
  /** The plugins of the agent. Default: those of the runner that called it. */
  readonly plugins?: PluginManager | undefined
  /** The plugin finds the run of the session of the agent here. */
  readonly runs: RunRegistry
}

/**
 * Runs an agent in place of the `AgentTool` that a call names. ADK 2.0.0 does the same, with two differences: here its runner has the
 * plugins of the chat's runner, so that its calls are checked, and its session is stored, so that it can wait.
 */
export function nestAgent(call: ToolCall, options: NestedAgentOptions): void {
  wrapRun(call.toolContext, options.agent, (_run, toolArgs) =>
    runNestedAgent({ ...call, toolArgs }, options),
  )
}

/**
 * Runs the agent of a call. If calls inside wait for approval when the agent ends, the outer call asks ADK for a confirmation, and runs
 * again when one of them was decided.
 */
async function runNestedAgent(
  { toolArgs, toolContext }: ToolCall,
  options: NestedAgentOptions,
): Promise<unknown> {
  const { agent, outer, pause } = options
  const nested = describeRun(toolContext, options)
  const service = openSession(toolContext, nested, outer)
  const { events } = service.session
  const message = pause ? await findResponses(service.session, options) : toRequest(agent, toolArgs)
  const before = pause && events.at(-1)
  const last = message ? await runAgent(message, toolContext, { options, nested, service }) : before
  if (last === 'stopped') return STOPPED
  const asked = listQuestions(readOpenQuestions(events))
  if (asked.length === 0) return toResult(agent, last ?? before)
  outer.pausing.set(nested.toolCallId, { session: nested.sessionId, asked })
  toolContext.requestConfirmation({ hint: `Wait for approvals inside ${agent.name}.` })
  toolContext.actions.skipSummarization = true
  return PENDING_INSIDE
}

interface NestedParts {
  readonly options: NestedAgentOptions
  readonly nested: NestedPlace
  readonly service: NestedSession
}

/** Runs the agent with a message. Returns its last event. A stopped run stays in `outer.inner`. */
async function runAgent(
  message: Content,
  toolContext: Context,
  parts: NestedParts,
): Promise<Event | 'stopped' | undefined> {
  const { options, nested, service } = parts
  const { outer, pause, runs } = options
  const { session } = service
  const run = new NestedRun(outer.messageId, pause ? 'responses' : 'message', nested)
  outer.inner.add(run)
  runs.openIn(session, run)
  let last: Event | undefined
  try {
    const runner = createRunner(toolContext, options, service)
    const { runConfig, abortSignal } = toolContext.invocationContext
    const { maxLlmCalls } = runConfig ?? {}
    for await (const event of runner.runAsync({
      userId: session.userId,
      sessionId: session.id,
      newMessage: message,
      customMetadata: writeNotes({ messageId: outer.messageId }),
      ...(maxLlmCalls !== undefined && { runConfig: { maxLlmCalls } }),
      ...(abortSignal && { abortSignal }),
    })) {
      if (run.loss) throw outer.markLost(run.loss)
      run.markStored()
      forward(event, toolContext)
      last = event
    }
    if (run.loss) throw outer.markLost(run.loss)
    if (abortSignal?.aborted) return 'stopped'
    for (const id of run.endingsStored) outer.markEndingPending(id)
    outer.inner.delete(run)
    return last
  } catch (thrown) {
    if (run.loss) outer.markLost(run.loss)
    if (!toolContext.abortSignal?.aborted) await endFailed(run, parts)
    throw thrown
  } finally {
    runs.release(run)
  }
}

/** Ends the calls and questions of a run that has failed, unless another process continues them. */
async function endFailed(
  run: RunState,
  { options: { outer, ledger }, service }: NestedParts,
): Promise<void> {
  run.abandonCalls(ledger)
  outer.inner.delete(run)
  if (outer.loss) return
  await storeResults(service, run, outer)
  await cancelQuestions(service, ledger, outer)
}

/** AP802: stores the results of approved calls that ran before the run of an agent failed. */
async function storeResults(
  service: NestedSession,
  { results, decided }: RunState,
  outer: RunState,
): Promise<void> {
  for (const [id, { name, response }] of results) {
    const note = decided.get(id)
    if (!note) continue
    const event = toEndingEvent({ id, name, response }, note)
    await service.appendEvent({ session: service.session, event })
    outer.markEndingPending(id)
  }
}

/** AP803: cancels the open questions of an agent that has failed. Its calls would never run. */
async function cancelQuestions(
  service: NestedSession,
  ledger: Ledger,
  outer: RunState,
): Promise<void> {
  const { session } = service
  for (const question of listQuestions(readOpenQuestions(session.events))) {
    const { approvalId, toolCallId: id, toolName: name } = question
    await ledger.cancel(approvalId, AGENT_FAILED)
    const approval = await ledger.get(approvalId)
    const ending = approval && describeEnding(approval)
    if (!ending) continue
    const event = toEndingEvent({ id, name, response: ending.response }, ending.note)
    await service.appendEvent({ session, event })
    outer.markEndingPending(id)
  }
}

const AGENT_FAILED = 'the agent that made the call has failed'

const STOPPED = { error: 'Stopped before the result arrived.' }

function describeRun(
  toolContext: Context,
  { agent, outer, canWait, pause }: NestedAgentOptions,
): NestedPlace {
  const { sessionService, agent: caller } = toolContext.invocationContext
  if (!sessionService)
    throw new TypeError('An agent that is used as a tool needs a session service.')
  return {
    agent,
    path: [...(outer.path ?? [caller?.name ?? '']), agent.name],
    canWait: canWait && !(outer instanceof NestedRun && !outer.place.canWait),
    root: outer.rootOf(toolContext.invocationContext),
    toolCallId: toolContext.functionCallId ?? '',
    sessionId: pause?.session ?? randomUUID(),
  }
}

/** Opens the session of the agent. It starts with the state of the caller, and each event is stored in the session of the chat. */
function openSession(
  { state }: Context,
  { root, sessionId, toolCallId }: NestedPlace,
  outer: RunState,
): NestedSession {
  return new NestedSession({
    session: root.session,
    id: sessionId,
    state: state.toRecord(),
    store: (event) =>
      storeNote(root, {
        nested: { session: sessionId, toolCallId, event: structuredClone(event) },
      }).catch((error: unknown) => {
        outer.markLost(toError(error))
        throw error
      }),
  })
}

/** Creates a runner like that of `AgentTool`, with plugins. */
function createRunner(
  toolContext: Context,
  { agent, plugins }: NestedAgentOptions,
  sessionService: NestedSession,
): Runner {
  const { artifactService } = toolContext.invocationContext
  const pluginManager = plugins ?? toolContext.invocationContext.pluginManager
  const runner = new Runner({
    appName: sessionService.session.appName,
    agent,
    sessionService,
    ...(artifactService && { artifactService: forwardArtifacts(toolContext, artifactService) }),
    ...inheritServices(toolContext.invocationContext),
  })
  return Object.assign(runner, { pluginManager })
}

/** Returns an artifact service that saves the artifacts of the agent as those of its caller. ADK does not export its own. */
function forwardArtifacts(
  toolContext: Context,
  service: NonNullable<Context['invocationContext']['artifactService']>,
): BaseArtifactService {
  return {
    saveArtifact: async ({ filename, artifact }) => toolContext.saveArtifact(filename, artifact),
    loadArtifact: async ({ filename, version }) => toolContext.loadArtifact(filename, version),
    listArtifactKeys: async () => toolContext.listArtifacts(),
    deleteArtifact: async ({ filename }) => service.deleteArtifact(filename),
    listVersions: async ({ filename }) => service.listVersions(filename),
    listArtifactVersions: async ({ filename }) => service.listArtifactVersions(filename),
    getArtifactVersion: async (request) => service.getArtifactVersion(request),
  }
}

/** Returns the message that the agent starts with. */
function toRequest(agent: BaseAgent, args: Record<string, unknown>): Content {
  const { request } = args
  const hasSchema = isLlmAgent(agent) && agent.inputSchema !== undefined
  const text = !hasSchema && typeof request === 'string' ? request : JSON.stringify(args)
  return { role: 'user', parts: [{ text }] }
}

/**
 * Returns the confirmations that resume the agent: of calls that were decided, and of calls of other agents with a decision inside.
 * If it waits for nothing, its last run was interrupted by a crash, and the last responses resume it. Returns undefined if nothing
 * was decided, or if the agent has ended.
 */
async function findResponses(
  session: Session,
  { ledger }: NestedAgentOptions,
): Promise<Content | undefined> {
  const { events } = session
  const { asked, paused } = readOpenQuestions(events)
  const last = events.at(-1)
  if (last && isFinalResponse(last) && listQuestions({ asked, paused }).length === 0)
    return undefined
  const isDecidedCall = async (toolCallId: string): Promise<boolean> => {
    const approval = await ledger.findByCall(chatOf(session), toolCallId)
    return approval !== undefined && isDecided(approval)
  }
  const ids: string[] = []
  for (const { approvalId, toolCallId } of asked.values())
    if (await isDecidedCall(toolCallId)) ids.push(approvalId)
  for (const { confirmationId, asked: inside } of paused.values()) {
    const decided = await Promise.all(inside.map(({ toolCallId }) => isDecidedCall(toolCallId)))
    // A call that waits for nothing was interrupted by a crash.
    if (inside.length === 0 || decided.includes(true)) ids.push(confirmationId)
  }
  if (ids.length === 0 && asked.size + paused.size > 0) return undefined
  if (ids.length === 0) return events.findLast(({ author }) => author === 'user')?.content
  const parts = ids.map((id) => ({
    functionResponse: { id, name: CONFIRMATION_TOOL, response: { confirmed: true } },
  }))
  return { role: 'user', parts }
}

/** Passes state changes on to the caller. */
function forward({ actions }: Event, { state }: Context): void {
  const delta = Object.entries(actions.stateDelta).filter(
    ([key]) => !key.startsWith(State.TEMP_PREFIX),
  )
  if (delta.length > 0) state.update(Object.fromEntries(delta))
}

/** Returns the text of the last event as the result of the tool. Throws if the model of the agent failed. ADK returns an empty text then. */
function toResult(agent: BaseAgent, last: Event | undefined): unknown {
  const parts = last?.content?.parts ?? []
  if (parts.length === 0 && last?.errorCode !== undefined)
    throw new Error(
      `The model of the agent ${agent.name} failed: ${last.errorMessage ?? last.errorCode}`,
    )
  if (parts.length === 0) return ''
  const text = parts
    .filter((part) => !part.thought)
    .flatMap((part) => part.text || [])
    .join('\n')
  return isLlmAgent(agent) && agent.outputSchema ? (JSON.parse(text) as unknown) : text
}

interface NestedSessionOptions {
  /** The session of the chat, which contains the events of the nested one. */
  readonly session: Session
  /** The id of the nested session. */
  readonly id: string
  /** The state that the agent starts with. */
  readonly state: Record<string, unknown>
  /** Stores an event in the session of the chat. */
  readonly store: (event: Event) => Promise<void>
}

/**
 * The session of an agent that is used as a tool. Its events are notes on events of the chat's session, so they are stored, locked,
 * rewound and deleted together with the chat.
 */
class NestedSession extends BaseSessionService {
  /** Has the ids of the chat, so that tools inside see the same chat, user and artifacts. */
  readonly session: Session
  readonly #store: (event: Event) => Promise<void>

  constructor({ session, id, state, store }: NestedSessionOptions) {
    super()
    this.#store = store
    const { appName, userId, id: chatId, lastUpdateTime } = session
    this.session = createSession({ id: chatId, appName, userId, state, events: [], lastUpdateTime })
    for (const event of readNestedEvents(session.events, id)) {
      Object.assign(this.session.state, event.actions.stateDelta)
      this.session.events.push(event)
    }
    renameAnsweredCalls(this.session.events)
  }

  override async appendEvent(request: AppendEventRequest): Promise<Event> {
    const { event } = request
    if (event.partial) return event
    await this.#store(event)
    const appended = await super.appendEvent(request)
    renameAnsweredCalls(this.session.events, [appended])
    return appended
  }

  override getSession(): Promise<Session> {
    return Promise.resolve(this.session)
  }

  override createSession(): Promise<Session> {
    return Promise.resolve(this.session)
  }

  override listSessions(): Promise<ListSessionsResponse> {
    const sessions = [this.session]
    return Promise.resolve({ sessions, page: 1, limit: 1, totalItems: 1, totalPages: 1 })
  }

  override async deleteSession(): Promise<void> {}
}

/** Returns the events of a nested session. They are copies, because ADK changes the events of a session. */
function readNestedEvents(events: readonly Event[], id: string): Event[] {
  return events.flatMap((event) => {
    const { nested } = readNotes(event)
    return nested?.session === id ? [createEvent(structuredClone(nested.event))] : []
  })
}
