import { isDeepStrictEqual } from 'node:util'

import type {
  BaseAgent,
  Context,
  Event,
  InvocationContext,
  LlmAgent,
  NodeContext,
  PluginManager,
  Session,
  Workflow,
} from '@google/adk'
import {
  createEvent,
  getFunctionResponses,
  isLlmAgent,
  isWorkflow,
  ParallelWorker,
  ToolNode,
} from '@google/adk'

import { toStorable } from '../../approvals/digest.ts'
import type { EventNotes, NodeNote, ProgressNote } from '../events/event-notes.ts'
import { writeNotes } from '../events/event-notes.ts'
import { findFinishedTask, findNodeCalls, findProgress } from './find-steps.ts'
import {
  findLastAgent,
  findUnnotedRuns,
  hasBegun,
  readNodeNotes,
  readNodeRuns,
  splitPath,
  toResumeEvents,
  toSteps,
  withEnds,
} from './node-runs.ts'
import { findTurn } from '../history/stored-turns.ts'
import type { ToolCall } from '../tool-call.ts'
import { arrangeRequests } from '../adk-workarounds/arrange-calls.ts'
import { intercept } from '../adk-workarounds/session-services.ts'
import {
  viewEntryRuns,
  viewRuns,
  controlTool,
  ToolNodeCalls,
  refuseInterrupted,
  runsCode,
  createProgress,
  listOwnNodes,
  listTransferAgents,
  readInner,
} from './workflow-nodes.ts'

export interface NodeHooks {
  /** Returns the id of the message of a run, or undefined if the bridge did not start the run. */
  readonly findMessageId: (context: InvocationContext) => string | undefined
  /** Whether an agent waits for responses to other calls of its turn. */
  readonly isHeld: (context: InvocationContext, agentName: string) => boolean
}

type StartedNode = Parameters<PluginManager['runBeforeNodeCallback']>[0]
type EndedNode = Parameters<PluginManager['runAfterNodeCallback']>[0]

/** The workflows that run, by ADK invocation. */
const managers = new WeakMap<PluginManager, Map<string, WorkflowRun>>()

/** Returns the runs of the workflow of a plugin manager, by ADK invocation. They are found from here on. */
export function registerRuns(manager: PluginManager): Map<string, WorkflowRun> {
  const runs = new Map<string, WorkflowRun>()
  managers.set(manager, runs)
  return runs
}

/** Returns the run of the workflow that a node is part of. A node that is used as a tool is not part of one. */
export function findRun(context: InvocationContext): WorkflowRun | undefined {
  const { pluginManager, invocationId, nodeToolDepth } = context
  return nodeToolDepth > 0 ? undefined : managers.get(pluginManager)?.get(invocationId)
}

/** Resolves when all earlier events of a workflow are stored. Elsewhere, ADK stores each event before it continues. */
export async function untilStored(context: InvocationContext): Promise<void> {
  await findRun(context)?.stored()
}

/** Prepares a call of a tool that is a node of a workflow. Does nothing for any other call. */
export async function prepareNodeCall(call: ToolCall): Promise<void> {
  await findRun(call.toolContext.invocationContext)?.calls.prepare(call)
}

/** Whether a call was made for a tool that is a node of a workflow. */
export function isNodeCall({ invocationContext, functionCallId }: Context): boolean {
  return findRun(invocationContext)?.calls.has(functionCallId) === true
}

/** One run of the workflow of a chat. */
export class WorkflowRun {
  readonly messageId: string
  /** Resolves when all events that were emitted so far are stored, or when the run has ended. */
  readonly stored: () => Promise<void>
  readonly #root: Workflow
  readonly #hooks: NodeHooks
  /** The progress of each workflow, by path. */
  readonly #progress = new Map<string, ProgressNote>()
  readonly #inputs = new WeakMap<NodeContext, unknown>()
  /** The agents at which nodes continue that have transferred to them. */
  readonly #transfers = new Map<string, BaseAgent>()
  /** The calls of tools that are nodes. */
  readonly calls: ToolNodeCalls

  constructor(
    root: Workflow,
    options: {
      readonly messageId: string
      /** Resolves when all earlier events are stored. */
      readonly untilStored: () => Promise<void>
      readonly hooks: NodeHooks
    },
  ) {
    this.#root = root
    this.messageId = options.messageId
    this.stored = options.untilStored
    this.#hooks = options.hooks
    this.calls = new ToolNodeCalls(options.messageId, options.untilStored)
  }

  /** Returns the input of the workflow. ADK starts it with the response if it continues after a pause. */
  readInput({ invocationContext, nodePath }: NodeContext, given: unknown): unknown {
    const { session, invocationId } = invocationContext
    const turn = findTurn(session.events, this.messageId)
    const isFirst = turn === undefined || turn.firstEvent.invocationId === invocationId
    if (isFirst || nodePath !== this.#root.name) return given
    const { content } = turn.firstEvent
    const texts = content?.parts?.flatMap(({ text }) => text ?? []) ?? []
    return texts.length > 0 ? texts.join('') : content
  }

  /** Prepares a node. Returns a value if the node must not run: null if it waits, or its result. */
  async start(started: StartedNode): Promise<unknown> {
    const { node, nodeContext } = started
    await this.stored()
    if (node === this.#root) {
      // ADK takes a text message for the answer to an older question.
      nodeContext.resumeInputs = {}
      await this.#noteRuns(nodeContext)
    }
    if (!isWorkflow(node)) return this.#startNode(started)
    await this.#startWorkflow(node, nodeContext)
    return undefined
  }

  async #startWorkflow(workflow: Workflow, context: NodeContext): Promise<void> {
    if (!workflow.graph) {
      await this.#noteStart(workflow, context)
      viewEntryRuns(context, () => this.#viewSession(context))
      return
    }
    this.#setSession(context)
    this.#openProgress(workflow, context)
    this.#report(context, 'running')
  }

  async #startNode({ node, nodeContext, input }: StartedNode): Promise<unknown> {
    const { nodePath: path, invocationContext } = nodeContext
    const { events } = invocationContext.session
    const { runs } = readNodeRuns(events, this.messageId)
    const last = runs.findLast((run) => run.path === path)
    const waiting = last?.state === 'waiting' ? last : undefined
    if (waiting && !this.#canContinue(nodeContext, waiting)) {
      nodeContext.interruptIds = [...(waiting.interrupts ?? [])]
      return null
    }
    this.#inputs.set(nodeContext, input)
    const result = node instanceof ToolNode ? this.calls.start(node, nodeContext) : undefined
    if (result !== undefined) {
      this.#store(nodeContext, { path, state: 'done', output: result })
      return result
    }
    if (isLlmAgent(node)) {
      arrangeRequests(node)
      this.#prepareAgent(nodeContext, hasBegun(events, this.messageId, path))
      const agent = node.findSubAgent(findLastAgent(events, this.messageId, path) ?? '')
      if (agent) this.#transfers.set(toAgentKey(node, invocationContext), agent)
    } else if (node instanceof ToolNode)
      controlTool(node, (given) => findRun(given.invocationContext)?.calls.in(given))
    else viewRuns(nodeContext, () => this.#viewSession(nodeContext))
    await this.#noteStart(node, nodeContext)
    return undefined
  }

  /** Returns the agent at which a node continues, once, if it has transferred to another one. */
  takeTransfer(node: LlmAgent, context: InvocationContext): BaseAgent | undefined {
    const key = toAgentKey(node, context)
    const agent = this.#transfers.get(key)
    this.#transfers.delete(key)
    return agent
  }

  /** Stores how nodes have ended that a server left without a note when it stopped. */
  async #noteRuns(context: NodeContext): Promise<void> {
    const { events } = context.invocationContext.session
    for (const node of findUnnotedRuns(events, this.messageId, this.#isAgent))
      this.#emit(context, { node })
    await this.stored()
  }

  /** Stores that a node has started, before it can have an effect. Throws if it ran when a server stopped. */
  async #noteStart(node: StartedNode['node'], context: NodeContext): Promise<void> {
    const { nodePath: path, branch, invocationContext } = context
    if (!runsCode(node)) return this.#report(context, 'running')
    refuseIfStopped(context)
    refuseInterrupted(node, path, readNodeNotes(invocationContext.session.events, this.messageId))
    const note = { path, state: 'started' as const, ...(branch !== undefined && { branch }) }
    this.#report(context, 'running', { node: note })
    await this.stored()
  }

  /** Stores how a node has ended. A node that is not done waits. */
  async end({ node, nodeContext, output: given }: EndedNode): Promise<void> {
    const { nodePath: path, branch } = nodeContext
    await this.stored()
    // A stopped agent ends like one that has no result.
    if (isLlmAgent(node)) refuseIfStopped(nodeContext)
    const output: unknown = given ?? this.#findTaskResult(node, nodeContext)
    if (given === undefined && output !== undefined) nodeContext.output = output
    if (isLlmAgent(node)) nodeContext.interruptIds = this.#findInterrupts(node, nodeContext)
    const end = this.#describeEnd(node, nodeContext, output)
    if (!end) return
    this.#store(nodeContext, { path, ...(branch !== undefined && { branch }), ...end })
    // ADK shows the result of a workflow again if its last node ended in an earlier run.
    const isOver = end.state === 'done' && node === this.#root
    if (isOver && this.#isShown(nodeContext, output)) nodeContext.output = undefined
  }

  /** Returns how a node has ended. Returns undefined for a workflow that waits: it does so as long as one of its nodes. */
  #describeEnd(
    node: EndedNode['node'],
    context: NodeContext,
    output: unknown,
  ): Omit<NodeNote, 'path'> | undefined {
    const { route } = context
    const interrupts = [...context.interruptIds]
    const waiting = { state: 'waiting' } as const
    const waitsForOutput = node.waitForOutput && output === undefined && route === undefined
    if (interrupts.length > 0 && !isWorkflow(node)) {
      const input = this.#inputs.get(context)
      return { ...waiting, interrupts, ...(input !== undefined && { input }) }
    }
    if (interrupts.length > 0 || waitsForOutput) return runsCode(node) ? waiting : undefined
    return {
      state: 'done',
      ...(output !== undefined && { output }),
      ...(route !== undefined && { route }),
    }
  }

  /** Whether an earlier run of the turn has shown a result. */
  #isShown({ invocationContext, invocationId }: NodeContext, output: unknown): boolean {
    const { events } = invocationContext.session
    const turn = findTurn(events, this.messageId)
    return (turn?.events ?? []).some(
      (event) =>
        event.output !== undefined &&
        event.invocationId !== invocationId &&
        isDeepStrictEqual(event.output, output),
    )
  }

  /** Returns the result with which an agent in the task mode has finished while another of its calls waited. ADK has lost it. */
  #findTaskResult(node: unknown, { nodePath, invocationContext }: NodeContext): unknown {
    if (!isLlmAgent(node) || node.mode !== 'task') return undefined
    const args = findFinishedTask(invocationContext.session.events, this.messageId, nodePath)
    return args && node.finishTaskTool.extractOutput(args)
  }

  /** Whether a node that waits has a response to continue with. */
  #canContinue(context: NodeContext, { path, interrupts = [] }: NodeNote): boolean {
    const { invocationId } = context
    const { events } = context.invocationContext.session
    const calls = findNodeCalls(events, this.messageId, { invocationId, path })
    if (calls.waiting.length > 0) return calls.hasResponse
    // The bridge has ended the calls of an agent, or holds it (AP8). The items of a worker wait apart.
    const node = this.#findNode(path)
    if (isLlmAgent(node) || node instanceof ParallelWorker || node instanceof ToolNode) return true
    // A function waits for the calls of the tools that it runs.
    const first = events.find((event) => event.invocationId === invocationId)
    const responses = first ? getFunctionResponses(first) : []
    if (responses.some(({ id = '' }) => interrupts.includes(id))) return true
    const { questions } = readNodeRuns(events, this.messageId)
    return interrupts.every((id) => questions.get(id)?.response !== undefined)
  }

  /** Returns what an agent waits for when its run has ended. */
  #findInterrupts(node: LlmAgent, context: NodeContext): string[] {
    const { nodePath: path, invocationId, invocationContext } = context
    const { events } = invocationContext.session
    const calls = findNodeCalls(events, this.messageId, { invocationId, path })
    if (calls.waiting.length > 0) return [...calls.waiting]
    const isHeld = listTransferAgents(node).some(({ name }) =>
      this.#hooks.isHeld(invocationContext, name),
    )
    return isHeld ? [...calls.turnWaiting] : []
  }

  /** Lets ADK read the outcome of nodes from the notes of the turn. */
  #setSession(context: NodeContext): void {
    Object.defineProperty(context, 'session', { value: this.#viewSession(context) })
  }

  #viewSession({ invocationContext, invocationId, nodePath }: NodeContext): Session {
    const { session } = invocationContext
    const get = (): Event[] => {
      const runs = readNodeRuns(session.events, this.messageId, nodePath)
      return toResumeEvents(runs, { invocationId, isAgent: this.#isAgent })
    }
    return Object.create(session, { events: { get } }) as Session
  }

  /** Stores the input of an agent as ADK does, with a note. Does not store it again if the agent continues. */
  #prepareAgent(nodeContext: NodeContext, isResumed: boolean): void {
    const { nodePath: path, invocationContext: context } = nodeContext
    const { session, sessionService: sessions } = context
    const sessionService =
      sessions &&
      intercept(sessions, {
        appendEvent: async ({ event }) => {
          if (isResumed) return event
          const node = { path, state: 'started' as const }
          const customMetadata = writeNotes({ node }, event.customMetadata)
          return sessions.appendEvent({ session, event: { ...event, customMetadata } })
        },
      })
    Object.defineProperties(nodeContext, {
      session: { value: this.#viewSession(nodeContext) },
      invocationContext: { value: context.clone({ ...(sessionService && { sessionService }) }) },
      getInvocationContext: { value: () => context },
    })
  }

  readonly #isAgent = (path: string): boolean => isLlmAgent(this.#findNode(path))

  /** Returns the node of a path. The item of a parallel worker is `worker.worker@0`. */
  #findNode(path: string): unknown {
    let found: unknown = this.#root
    for (const { step } of toSteps(path)) {
      if (found instanceof ParallelWorker) found = readInner(found)
      else if (isWorkflow(found)) found = listOwnNodes(found).find(({ name }) => name === step)
    }
    return found
  }

  #openProgress(workflow: Workflow, context: NodeContext): void {
    const { nodePath: path, invocationContext } = context
    const { events } = invocationContext.session
    const { runs } = readNodeRuns(events, this.messageId, path)
    const isResumed = runs.some((run) => run.path.startsWith(`${path}.`))
    const last = isResumed ? findProgress(events, this.messageId, workflow.name) : undefined
    const progress = last ? withEnds(last, path, runs) : createProgress(workflow)
    this.#progress.set(path, progress)
    // MP1020: a server that was killed may not have stored that the last node had ended, and no other node may follow.
    if (last && !isDeepStrictEqual(progress, last)) this.#emit(context, { progress })
  }

  #store(context: NodeContext, { input, output, ...rest }: NodeNote): void {
    // AP800: the code of the node has taken effect, whatever it returned.
    const node = {
      ...rest,
      ...(input !== undefined && { input: toStorable(input) }),
      ...(output !== undefined && { output: toStorable(output) }),
    }
    this.#report(context, node.state === 'done' ? 'done' : 'running', { node })
  }

  /** Writes an event without content: the progress of the workflow of a node, if it has changed, and notes. */
  #report(context: NodeContext, state: 'running' | 'done', notes: EventNotes = {}): void {
    const [workflowPath, step] = splitPath(context.nodePath)
    const last = this.#progress.get(workflowPath)
    const index = last?.steps.findIndex(({ name }) => name === step) ?? -1
    const hasChanged = last !== undefined && index >= 0 && last.steps[index]?.state !== state
    if (!hasChanged && notes.node === undefined) return
    const progress = hasChanged
      ? { ...last, steps: last.steps.with(index, { name: step, state }) }
      : undefined
    if (progress) {
      const { edges: _stored, ...next } = progress
      this.#progress.set(workflowPath, next)
    }
    this.#emit(context, { ...notes, ...(progress && { progress }) })
  }

  #emit(context: NodeContext, notes: EventNotes): void {
    const { nodePath, branch, invocationId } = context
    const { messageId } = this
    context.emit(
      createEvent({
        author: splitPath(nodePath)[1],
        invocationId,
        ...(branch !== undefined && { branch }),
        customMetadata: writeNotes({ messageId, ...notes }),
      }),
    )
  }
}

/** The items of a `ParallelWorker` run the same agent in different branches. */
function toAgentKey({ name }: LlmAgent, { branch = '' }: InvocationContext): string {
  return `${branch} ${name}`
}

/** Ends the workflow if its turn was stopped. ADK 2.0.0 would start the next node. */
export function refuseIfStopped({ invocationContext }: NodeContext): void {
  if (invocationContext.abortSignal?.aborted !== true) return
  // ADK recognises its own error, which it does not export, by this name.
  throw Object.assign(new Error('The turn was stopped.'), { name: 'InvocationAbortedError' })
}
