import { randomUUID } from 'node:crypto'

import type { BaseTool, LlmAgent, Workflow, Event, NodeContext, Session } from '@google/adk'
import {
  DEFAULT_ROUTE,
  isLlmAgent,
  isWorkflow,
  JoinNode,
  ParallelWorker,
  ToolNode,
  createEvent,
  generateClientFunctionCallId,
  ToolConfirmation,
} from '@google/adk'

import type { StepEdge } from '../../protocol/message.ts'
import { CONFIRMATION_TOOL } from '../../protocol/message.ts'
import type { NodeNote, ProgressNote } from '../events/event-notes.ts'
import { findToolNodeCall } from './node-runs.ts'
import { asksForApproval } from '../history/open-questions.ts'
import type { ToolCall } from '../tool-call.ts'
import { createToolNodeCallId } from '../tool-call.ts'
import { NODE_INTERRUPTED } from '../translate/model-outcome.ts'
import { replaceRunMethod, runsAsAdk } from './run-methods.ts'

type Node = NonNullable<Workflow['graph']>['nodes'][number]

const START = '__START__'
const MAX_EDGES = 64
const MAX_ROUTE_LENGTH = 40

/** Returns the nodes of a workflow without those of nested workflows. The nodes of an entry function are known only when it runs. */
export function listOwnNodes({ graph }: Workflow): Node[] {
  return (graph?.nodes ?? []).filter(({ name }) => name !== START)
}

/** Returns the progress of a workflow that has not started. */
export function createProgress(workflow: Workflow): ProgressNote {
  const steps = listOwnNodes(workflow).map(({ name }) => ({ name, state: 'pending' as const }))
  const edges = listOwnEdges(workflow)
  const agent = workflow.name
  return { id: randomUUID(), agent, kind: 'workflow', steps, ...(edges && { edges }) }
}

/** Returns the edges of a workflow without those from its start, or undefined if there are too many to send. */
function listOwnEdges({ graph }: Workflow): StepEdge[] | undefined {
  const edges = (graph?.edges ?? []).filter(({ fromNode }) => fromNode.name !== START)
  if (edges.length > MAX_EDGES) return undefined
  return edges.map(({ fromNode, toNode, route }) => {
    const routes = [route].flat().filter((each) => each !== null && each !== DEFAULT_ROUTE)
    const text = routes.join(', ').slice(0, MAX_ROUTE_LENGTH)
    return { from: fromNode.name, to: toNode.name, ...(text !== '' && { route: text }) }
  })
}

/** Returns the nodes of a workflow at any depth. The node that a `ParallelWorker` runs for each item takes its place. */
function listNodes(workflow: Workflow): unknown[] {
  return listOwnNodes(workflow).flatMap((node) =>
    isWorkflow(node) ? [node, ...listNodes(node)] : [readInner(node)],
  )
}

/** Returns the node that a `ParallelWorker` runs for each item, or the node itself. */
export function readInner(node: unknown): unknown {
  // ADK declares the inner node private.
  return node instanceof ParallelWorker ? Reflect.get(node, 'inner') : node
}

/** Returns the nodes that are agents. */
export function listNodeAgents(workflow: Workflow): LlmAgent[] {
  return listNodes(workflow).filter((node) => isLlmAgent(node))
}

/** Returns an agent and the agents to which it can transfer. */
export function listTransferAgents(agent: LlmAgent): LlmAgent[] {
  const below = agent.subAgents.filter((subAgent) => isLlmAgent(subAgent))
  return [agent, ...below.flatMap(listTransferAgents)]
}

/** Returns the tools that are nodes. ADK also runs a tool alone, as a workflow with one node. */
export function listNodeTools(root: unknown): BaseTool[] {
  const nodes = isWorkflow(root) ? listNodes(root) : [root]
  return nodes.flatMap((node) => (node instanceof ToolNode ? node.tool : []))
}

/**
 * Whether an agent that is a node of a workflow, or to which such a node transfers, can wait for the approval of a call. ADK finds the
 * agent of a confirmation by its name. An agent in the mode `task` does not end when another agent has replied for it.
 */
export function canNodeWait(agent: unknown, root: unknown): boolean {
  if (!isWorkflow(root) || !isLlmAgent(agent) || !runsAsAdk(agent)) return false
  const agents = listNodes(root).flatMap((node) => {
    if (!isLlmAgent(node)) return node
    return node.mode === 'task' ? [node] : listTransferAgents(node)
  })
  const named = agents.filter((it) => nameOf(it) === agent.name)
  return named.length === 1 && named[0] === agent
}

function nameOf(node: unknown): unknown {
  return typeof node === 'object' && node !== null && Reflect.get(node, 'name')
}

/** Whether a node runs a function of the application, which may have effects. Agents and tools store their calls. */
export function runsCode(node: unknown): boolean {
  if (isWorkflow(node)) return node.graph === undefined
  return (
    !isLlmAgent(node) && ![JoinNode, ParallelWorker, ToolNode].some((Own) => node instanceof Own)
  )
}

/**
 * Throws if a node ran when its server stopped, unless it declares with `retryConfig` that it may run again. A node has not gone on if
 * a node that it runs has asked since it started. `notes` are those of the turn, in the order in which they were stored.
 */
export function refuseInterrupted(node: Node, path: string, notes: readonly NodeNote[]): void {
  const last = notes.findLastIndex((note) => note.path === path)
  if (node.retryConfig || notes[last]?.state !== 'started') return
  const later = notes.slice(last + 1)
  if (later.some((note) => note.state === 'waiting' && note.path.startsWith(`${path}.`))) return
  throw new InterruptedNodeError(node.name)
}

/** ADK stores the code and the message of an error in the session. */
class InterruptedNodeError extends Error {
  readonly code = NODE_INTERRUPTED

  constructor(nodeName: string) {
    super(
      `The server stopped while the step ${nodeName} ran. It may or may not have taken effect. The steps after it did not run.`,
    )
  }
}

/** A call of a tool that is a node. */
interface NodeCall {
  readonly context: NodeContext
  /** The parts of the id, which ADK joins with `:`. */
  readonly name: string
  readonly run: string
  /** Whether a person was asked, so that the ledger knows whether the call may run. */
  readonly isAsked: boolean
  /** The arguments, when they are known. */
  args?: Record<string, unknown>
}

/** The calls of tools that are nodes, in one run of a workflow. */
export class ToolNodeCalls {
  readonly #messageId: string
  readonly #untilStored: () => Promise<void>
  readonly #calls = new Map<string, NodeCall>()
  readonly #callOf = new WeakMap<NodeContext, NodeCall>()

  constructor(messageId: string, untilStored: () => Promise<void>) {
    this.#messageId = messageId
    this.#untilStored = untilStored
  }

  /**
   * Gives a node a call: a new one, or the one for which a person was asked. Returns the result if that call has ended. Throws if a
   * call that needed no approval ran when a server stopped.
   */
  start(node: ToolNode, context: NodeContext): Record<string, unknown> | undefined {
    const { events } = context.invocationContext.session
    const known = findToolNodeCall(events, this.#messageId, context.nodePath)
    const isAsked = known?.isAsked === true
    if (isAsked && known.response) return known.response
    if (known && !isAsked && !node.retryConfig) throw new InterruptedNodeError(node.name)
    const id = isAsked ? known.id : createToolNodeCallId()
    const [name = '', run = ''] = id.split(':')
    const call = { context, name, run, isAsked }
    this.#calls.set(id, call)
    this.#callOf.set(context, call)
    return undefined
  }

  /** Returns the call that a tool makes in the context of its node. */
  in(context: NodeContext): NodeCall | undefined {
    return this.#callOf.get(context)
  }

  has(toolCallId = ''): boolean {
    return this.#calls.has(toolCallId)
  }

  /** Stores a call before it runs. A call for which a person was asked is stored, and the ledger decides whether it runs. */
  async prepare({ tool, toolArgs: args, toolContext }: ToolCall): Promise<void> {
    const id = toolContext.functionCallId ?? ''
    const call = this.#calls.get(id)
    if (!call) return
    call.args = args
    if (call.isAsked) {
      toolContext.toolConfirmation ??= new ToolConfirmation({ confirmed: true })
      return
    }
    const { nodePath: path, branch, invocationId } = call.context
    call.context.emit(
      createEvent({
        author: path.slice(path.lastIndexOf('.') + 1),
        invocationId,
        nodeInfo: { path },
        content: { role: 'model', parts: [{ functionCall: { id, name: tool.name, args } }] },
        ...(branch !== undefined && { branch }),
      }),
    )
    await this.#untilStored()
  }
}

type Run = (context: NodeContext, input: unknown) => AsyncGenerator<Event, void>

/**
 * Lets a tool that is a node ask for approval. ADK 2.0.0 makes no event for the call, gives it the same id in each turn, and takes the
 * placeholder of a call that waits for its result. Runs for which `find` returns nothing are not affected.
 */
export function controlTool(
  node: ToolNode,
  find: (context: NodeContext) => NodeCall | undefined,
): void {
  if (!runsAsAdk(node)) return
  replaceRunMethod<Run>(
    node,
    'runImpl',
    (run) =>
      async function* runTool(context, input) {
        const call = find(context)
        if (!call) return yield* run.call(node, context, input)
        const own = Object.create(context, {
          nodePath: { value: call.name },
          runId: { value: call.run },
        }) as NodeContext
        for await (const event of run.call(node, own, input))
          yield asksForApproval(event) ? toRequest(node, call, event) : event
      },
  )
}

/** Returns the confirmation request for a call, as ADK makes it for the calls of an agent. */
function toRequest({ name, tool }: ToolNode, call: NodeCall, event: Event): Event {
  const originalId = `${call.name}:${call.run}`
  const { invocationId, branch, actions } = event
  const id = generateClientFunctionCallId()
  const args = {
    originalFunctionCall: { id: originalId, name: tool.name, args: call.args ?? {} },
    toolConfirmation: actions.requestedToolConfirmations[originalId],
  }
  return createEvent({
    author: name,
    invocationId,
    actions,
    content: { role: 'user', parts: [{ functionCall: { id, name: CONFIRMATION_TOOL, args } }] },
    longRunningToolIds: [id],
    ...(branch !== undefined && { branch }),
  })
}

type Scheduler = NonNullable<NodeContext['scheduler']>

/** The schedulers of ADK, by those that `viewRuns` has put in their place. */
const originals = new WeakMap<Scheduler, Scheduler>()

/**
 * Lets ADK read from a view of the session which nodes a function has run with `runNode`. The function itself reads the session as it
 * is.
 */
export function viewRuns(context: NodeContext, view: () => Session): void {
  const { scheduler } = context
  if (scheduler) context.scheduler = viewScheduler(scheduler, view)
}

/** Does the same for the entry function of a workflow, whose context gets its scheduler only when the workflow starts. */
export function viewEntryRuns(context: NodeContext, view: () => Session): void {
  let scheduler: Scheduler | undefined
  let isStarting = false
  Object.defineProperties(context, {
    scheduler: {
      get: () => scheduler,
      set: (given: Scheduler) => {
        scheduler = viewScheduler(given, view)
        isStarting = true
      },
    },
    session: {
      get: () => {
        // ADK reads the answers to questions once, before it calls the function.
        const { session } = context.invocationContext
        if (!isStarting) return session
        isStarting = false
        return view()
      },
    },
  })
}

function viewScheduler(given: Scheduler, view: () => Session): Scheduler {
  const scheduler = originals.get(given) ?? given
  const viewing: Scheduler = {
    schedule: (context, ...rest) => scheduler.schedule(withSession(context, view), ...rest),
  }
  originals.set(viewing, scheduler)
  return viewing
}

/** Returns the context with another session. ADK writes the outcome of nodes to the context, so it is not a copy. */
function withSession(context: NodeContext, view: () => Session): NodeContext {
  return new Proxy(context, {
    get(target, name) {
      return name === 'session' ? view() : (Reflect.get(target, name) as unknown)
    },
  })
}
