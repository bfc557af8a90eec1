import type {
  BaseAgent,
  BaseLlm,
  BaseTool,
  Event,
  InvocationContextParams,
  LlmAgent,
  LiveRequestQueue,
  LlmRequest,
  PluginManager,
  RunAsyncToolRequest,
  RunConfig,
  RunnerConfig,
} from '@google/adk'
import { BaseTool as Tool, Context, InvocationContext, isLlmAgent, Runner } from '@google/adk'
import type { Content } from '@google/genai'
import { Behavior } from '@google/genai'

import { arrangeRequests } from '../../../agent/adk-workarounds/arrange-calls.ts'
import { toError } from '../../../agent/adk-workarounds/guard-tool.ts'
import { QuietPlugin } from '../../../agent/adk-workarounds/plugin-callbacks.ts'
import { APPROVAL_UNAVAILABLE, toResponse } from '../../../agent/call-responses.ts'
import type { ToolCall } from '../../../agent/tool-call.ts'
import type { TermsOptions } from '../../../calls/call-kind.ts'
import { checkCall } from '../../../calls/call-terms.ts'
import type { CallOutcome, ToolErrors } from '../../../calls/run-call.ts'
import { runCall } from '../../../calls/run-call.ts'
import type { AppChatRef } from '../../../shared/chat-ref.ts'

/**
 * Returns a copy of the agent for a live run: with the live model, and without tool callbacks. ADK would invoke those when the
 * model makes a call. `runLiveCall` invokes them when the tool runs.
 */
export function toLiveAgent(agent: BaseAgent, model: BaseLlm): BaseAgent {
  const subAgents = agent.subAgents.map((subAgent) => toLiveAgent(subAgent, model))
  const live = isLlmAgent(agent)
    ? agent.clone({ model, subAgents, beforeToolCallback: [], afterToolCallback: [] })
    : agent.clone({ subAgents })
  if (isLlmAgent(live)) dropResumingProcessors(live)
  // An agent such as RoutedAgent creates its sub-agents itself. Their tools would run without approval.
  if (live.subAgents.some((subAgent, index) => subAgent !== subAgents[index]))
    throw new TypeError(
      `createBridge: the agent ${agent.name} cannot talk live, because it makes its sub-agents itself. Leave out \`live\`, or let an LlmAgent transfer to them.`,
    )
  return live
}

/** The processors of ADK 2.0.0 that run calls again after a response of the user. ADK does not export all of them. */
const RESUMING: ReadonlySet<string> = new Set([
  'AuthPreprocessor',
  'RequestConfirmationLlmRequestProcessor',
  'RequestInputLlmRequestProcessor',
])

/** LV640: a turn runs the calls that it has responses for. When a live run starts meanwhile, ADK would run them a second time. */
function dropResumingProcessors({ requestProcessors }: LlmAgent): void {
  const kept = requestProcessors.filter(({ constructor }) => !RESUMING.has(constructor.name))
  requestProcessors.splice(0, requestProcessors.length, ...kept)
}

/** The calls that ADK itself reacts to: they end the connection, and another agent continues. */
const TRANSFER_CALLS: ReadonlySet<string> = new Set(['transfer_to_agent', 'task_completed'])

/**
 * A tool that passes its call to `onCall` and returns at once. While a tool runs, ADK receives neither audio nor interruptions. ADK expects no
 * result from a long-running tool that returns undefined; `onCall` provides it later.
 */
class LiveTool extends Tool {
  readonly inner: BaseTool
  readonly #onCall: (call: ToolCall) => void

  constructor(inner: BaseTool, onCall: (call: ToolCall) => void) {
    super({ name: inner.name, description: inner.description, isLongRunning: true })
    this.inner = inner
    this.#onCall = onCall
  }

  override async runAsync({ args, toolContext }: RunAsyncToolRequest): Promise<undefined> {
    this.#onCall({ tool: this.inner, toolArgs: args, toolContext })
  }
}

/** Whether a tool only passes its calls to `onCall`. */
function isLiveTool(tool: BaseTool): boolean {
  return tool instanceof LiveTool
}

/** Wraps every tool of a live request, so that `onCall` receives its calls. */
export function wrapTools(request: LlmRequest, onCall: (call: ToolCall) => void): void {
  for (const [name, tool] of Object.entries(request.toolsDict)) {
    if (TRANSFER_CALLS.has(name) || tool instanceof LiveTool) continue
    request.toolsDict[name] = new LiveTool(tool, onCall)
  }
}

/** Returns the original tool of a live request by its name. */
export function findLiveTool({ toolsDict }: LlmRequest, name: string): BaseTool | undefined {
  const tool = Object.hasOwn(toolsDict, name) ? toolsDict[name] : undefined
  return tool instanceof LiveTool ? tool.inner : undefined
}

/** Declares all functions as `NON_BLOCKING`: the model does not wait for their results. */
export function declareNonBlocking({ config }: LlmRequest): void {
  for (const tool of config?.tools ?? []) {
    if (!('functionDeclarations' in tool)) continue
    for (const declaration of tool.functionDeclarations ?? []) {
      if (!TRANSFER_CALLS.has(declaration.name ?? '')) declaration.behavior = Behavior.NON_BLOCKING
    }
  }
}

interface LiveAgentOptions extends LivePluginOptions {
  readonly chat: AppChatRef
  readonly agent: BaseAgent
  readonly model: BaseLlm
  readonly services: Omit<RunnerConfig, 'agent'> & { readonly appName: string }
  /** What the model receives. The run ends when it is closed. */
  readonly queue: LiveRequestQueue
  readonly runConfig: Partial<RunConfig>
}

/** Runs a copy of the agent live, with ADK. Yields its events. */
export function runLiveAgent(options: LiveAgentOptions): AsyncGenerator<Event, void> {
  const { chat, agent, model, services, queue, runConfig } = options
  const plugins = [new LivePlugin(options)]
  const live = toLiveAgent(agent, model)
  arrangeRequests(live)
  const runner = new Runner({ ...services, agent: live, plugins })
  const { principalId: userId, chatId: sessionId } = chat
  return runner.runLive({ userId, sessionId, liveRequestQueue: queue, runConfig })
}

interface LivePluginOptions {
  /** The plugins that the host passed to `createBridge`. */
  readonly hostPlugins: PluginManager
  /** Decides which calls need approval. */
  readonly terms: TermsOptions
  /** Called before the model connects. */
  readonly onRun: (context: InvocationContext) => void
  /** Converts an event before ADK stores and yields it. */
  readonly prepare: (event: Event) => Promise<Event>
}

/**
 * The only plugin that ADK knows in a live run. It calls the host's plugins for everything except the calls of a `LiveTool`:
 * `runLiveCall` calls their tool callbacks when the tool runs.
 */
class LivePlugin extends QuietPlugin {
  readonly #options: LivePluginOptions

  constructor(options: LivePluginOptions) {
    super('adk-stream-protocol:live')
    this.#options = options
  }

  override async beforeRunCallback(params: {
    invocationContext: InvocationContext
  }): Promise<Content | undefined> {
    this.#options.onRun(params.invocationContext)
    return this.#options.hostPlugins.runBeforeRunCallback(params)
  }

  override async beforeToolSelection(params: {
    callbackContext: Context
    tools: Readonly<Record<string, BaseTool>>
  }): Promise<Readonly<Record<string, BaseTool>> | undefined> {
    return this.#options.hostPlugins.runBeforeToolSelection(params)
  }

  override async afterRunCallback(params: { invocationContext: InvocationContext }): Promise<void> {
    await this.#options.hostPlugins.runAfterRunCallback(params)
  }

  override async onEventCallback(params: {
    invocationContext: InvocationContext
    event: Event
  }): Promise<Event> {
    const { hostPlugins, prepare } = this.#options
    const changed = hostPlugins.hasPlugins
      ? await hostPlugins.runOnEventCallback(params)
      : undefined
    return prepare(changed ?? params.event)
  }

  override async beforeToolCallback(
    params: ToolCall,
  ): Promise<Record<string, unknown> | undefined> {
    if (isLiveTool(params.tool)) return undefined
    // ADK runs this tool itself, so it cannot wait for an approval.
    const check = await checkCall(params, this.#options.terms)
    if (check.verdict !== 'run')
      return check.verdict === 'refuse' ? check.response : APPROVAL_UNAVAILABLE
    return this.#options.hostPlugins.runBeforeToolCallback(params)
  }

  override async afterToolCallback(
    params: ToolCall & { readonly result: Record<string, unknown> },
  ): Promise<Record<string, unknown> | undefined> {
    return isLiveTool(params.tool)
      ? undefined
      : this.#options.hostPlugins.runAfterToolCallback(params)
  }

  override async onToolErrorCallback(
    params: ToolCall & { readonly error: Error },
  ): Promise<Record<string, unknown> | undefined> {
    return this.#options.hostPlugins.runOnToolErrorCallback(params)
  }
}

/** The host's agent, plugins and error handling. */
interface CallHost {
  /** The original agent. The live run has a copy without tool callbacks. */
  readonly agent: BaseAgent
  readonly hostPlugins: PluginManager
  readonly errors: ToolErrors
  /** Called before a call runs. */
  readonly prepare: (call: ToolCall) => void
  readonly onError: (error: unknown) => void
}

/** Records the outcome of a call before its `after` callbacks run. */
export type RecordOutcome = (outcome: CallOutcome) => Promise<void>

/**
 * Runs a call of a live session with the host's callbacks, as ADK does in other runs. If a `before` callback throws, the call fails. If an
 * `after` callback throws, the outcome stays unchanged.
 */
export async function runLiveCall(
  { tool, toolArgs, toolContext }: ToolCall,
  { agent: root, hostPlugins, onError, errors, prepare }: CallHost,
  record: RecordOutcome,
): Promise<CallOutcome> {
  const { invocationContext, functionCallId, toolConfirmation, actions } = toolContext
  const agent = root.findAgent(invocationContext.agent?.name ?? '') ?? root
  const context = new Context({
    invocationContext: createContext(invocationContext, { agent, pluginManager: hostPlugins }),
    eventActions: actions,
    ...(functionCallId !== undefined && { functionCallId }),
    ...(toolConfirmation && { toolConfirmation }),
  })
  const call = { tool, toolArgs, toolContext: context }
  prepare(call)
  let outcome: CallOutcome
  try {
    outcome = await runCall(call, errors)
  } catch (thrown) {
    const failure = toFailure(call, thrown, errors)
    await record(failure)
    return failure
  }
  await record(outcome)
  try {
    const changed = await runAfterCallbacks(call, outcome, agent)
    return changed === undefined ? outcome : { ...outcome, result: changed }
  } catch (error) {
    onError(error)
    return outcome
  }
}

function toFailure(call: ToolCall, thrown: unknown, errors: ToolErrors): CallOutcome {
  const error = toError(thrown)
  const result = errors.respond(call, error)
  return { by: 'failure', result, error, hidden: errors.hasResponded(call.toolContext) }
}

/** Copies the run's context with changes, as ADK does for sub-agents. */
function createContext(
  parent: InvocationContext,
  change: Partial<InvocationContextParams>,
): InvocationContext {
  const fields: InvocationContextParams = Object.assign({}, parent)
  return new InvocationContext({ ...fields, ...change })
}

async function runAfterCallbacks(
  { tool, toolArgs, toolContext }: ToolCall,
  { result }: CallOutcome,
  agent: BaseAgent,
): Promise<unknown> {
  // ADK passes the tool's result as an object, or undefined.
  const response = result === undefined ? undefined : toResponse(result)
  const params = { tool, toolArgs, toolContext, result: response as Record<string, unknown> }
  const changed = await toolContext.invocationContext.pluginManager.runAfterToolCallback(params)
  if (changed) return changed
  for (const callback of isLlmAgent(agent) ? agent.canonicalAfterToolCallbacks : []) {
    const replacement = await callback({
      tool,
      args: toolArgs,
      context: toolContext,
      response: params.result,
    })
    if (replacement) return replacement
  }
  return undefined
}
