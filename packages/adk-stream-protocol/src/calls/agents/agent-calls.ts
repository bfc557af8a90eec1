import type { Event, InvocationContext, PluginManager, Runner } from '@google/adk'
import { isWorkflow } from '@google/adk'

import { pickAgent } from '../../agent/adk-workarounds/agent-flow.ts'
import { arrangeRequests } from '../../agent/adk-workarounds/arrange-calls.ts'
import { findPausedNote } from '../../agent/history/open-questions.ts'
import type { ToolCall } from '../../agent/tool-call.ts'
import { findAgentOf } from '../../agent/tree/agent-tool.ts'
import { canWait } from '../../agent/tree/can-wait.ts'
import {
  confineRemoteEvent,
  controlRemoteAgents,
  runRemoteAgentsWith,
} from '../../agent/tree/remote-agents.ts'
import { controlNodes } from '../../agent/tree/run-nodes.ts'
import { controlSteps, resumeSteps } from '../../agent/tree/run-steps.ts'
import { canNodeWait } from '../../agent/tree/workflow-nodes.ts'
import { isNodeCall, prepareNodeCall, untilStored } from '../../agent/tree/workflow-run.ts'
import type { RequestOptions, RunEvent } from '../approval-requests.ts'
import type { RunRegistry, RunState } from '../run-state.ts'
import { findPausedAgain, pauseAgain, restorePause } from './agent-pauses.ts'
import type { NestedAgentOptions } from './nested-agent.ts'
import { nestAgent } from './nested-agent.ts'
import { NestedRun } from './nested-run.ts'
import { storeNodeQuestions } from './node-questions.ts'
import type { RemoteHost } from './remote-pauses.ts'
import { createRemoteRuns } from './remote-runs.ts'

interface AgentCallsOptions extends RequestOptions, Omit<RemoteHost, 'runOf' | 'canWait'> {
  /** The agent of the chat. A call under any other root is part of a workflow. */
  readonly root: unknown
  readonly runs: RunRegistry
}

/** Runs the agents that other agents use in a way in which their calls can wait: as tools, as steps, as nodes, and on other servers. */
export class AgentCalls {
  readonly #options: AgentCallsOptions

  constructor(options: AgentCallsOptions) {
    this.#options = options
  }

  /** Controls the agents of a runner. */
  control({ agent, pluginManager }: Pick<Runner, 'agent' | 'pluginManager'>): void {
    const { runs, root } = this.#options
    const findMessageId = (context: InvocationContext): string | undefined => {
      const run = runs.find(context)
      return run?.isOfChat ? run.messageId : undefined
    }
    const isHeld = (context: InvocationContext, name: string): boolean =>
      runs.find(context)?.isHeld(context, name) === true
    controlSteps(root, pluginManager, findMessageId)
    const host = {
      ...this.#options,
      runOf: (context: InvocationContext) => runs.find(context),
      canWait: (call: ToolCall, run: RunState) => this.canWait(call, run),
    }
    runRemoteAgentsWith(pluginManager, createRemoteRuns(host))
    controlNodes(agent, pluginManager, { findMessageId, isHeld })
  }

  /** Prepares a run of ADK. If it resumes a turn, it continues at the agents that wait. */
  prepareRun(context: InvocationContext): void {
    const run = this.#options.runs.find(context)
    const { rootAgent } = context.agent ?? {}
    controlRemoteAgents(rootAgent)
    if (rootAgent) arrangeRequests(rootAgent)
    if (run?.cause === 'responses' && !resumeSteps(context, run.messageId)) pickAgent(context)
  }

  /** Prepares a call before it is checked. Resolves when the events before it are stored. */
  async prepareCall(call: ToolCall): Promise<void> {
    await untilStored(call.toolContext.invocationContext)
    await prepareNodeCall(call)
  }

  /** Confines an event to what its agent may say. Call this before anything else reads the event. */
  confine(event: Event): void {
    confineRemoteEvent(event)
  }

  /** Whether ADK can wait for the approval of a call. */
  canWait(call: ToolCall, run: RunState | undefined): boolean {
    if (!(run instanceof NestedRun)) return canWaitIn(this.#options.root, call)
    return run.place.canWait && canWaitIn(run.place.agent, call)
  }

  /** Runs the agent of an `AgentTool` in place of ADK. Returns true if the call only resumes after a pause, which needs no approval. */
  async runInPlace(call: ToolCall, outer: RunState): Promise<boolean> {
    const agent = findAgentOf(call.tool)
    if (!agent) return false
    const pause = call.toolContext.toolConfirmation
      ? (findPausedNote(call) ?? (await restorePause(call, outer, this.#options.ledger)))
      : undefined
    nestAgent(call, { ...this.#options, agent, outer, pause, canWait: this.canWait(call, outer) })
    return pause !== undefined
  }

  /** Like `runInPlace`, for a call that ADK does not run. Its agent gets the plugins of another runner. */
  runOutsideAdk(
    call: ToolCall,
    run: Pick<NestedAgentOptions, 'outer' | 'canWait'> & { readonly plugins: PluginManager },
  ): void {
    const agent = findAgentOf(call.tool)
    if (agent) nestAgent(call, { ...this.#options, ...run, agent, pause: findPausedNote(call) })
  }

  /** Stores that calls pause again which ADK has resumed. Returns the rest of the event. Returns undefined if none does. */
  async storePauses({ run, context, event }: RunEvent): Promise<Event | undefined> {
    const toolCallIds = findPausedAgain(run, event)
    if (toolCallIds.length === 0) return undefined
    return pauseAgain(run, context, { event, toolCallIds })
  }

  /** Stores questions that no tool asks. Returns the event with notes for clients. Returns undefined if it has none. */
  async storeQuestions(yielded: RunEvent): Promise<Event | undefined> {
    return storeNodeQuestions(yielded, this.#options)
  }
}

/**
 * Whether ADK can wait for the approval of a call. `createBridge` rejects agents that cannot. This check covers tools
 * that are unknown at that time, such as those of a toolset.
 */
function canWaitIn(root: unknown, call: ToolCall): boolean {
  if (isNodeCall(call.toolContext)) return true
  const { agent: caller } = call.toolContext.invocationContext
  if (isWorkflow(root) && !canNodeWait(caller, root)) return false
  return canWait(call, (agent) => agent === (isWorkflow(root) ? caller : root))
}
