import type {
  AsyncQueue,
  BaseLlmRequestProcessor,
  Event,
  InvocationContext,
  LlmAgent,
  PluginManager,
  Session,
  Workflow,
} from '@google/adk'
import {
  CONTENT_REQUEST_PROCESSOR,
  getFunctionCalls,
  getFunctionResponses,
  isLlmAgent,
  isWorkflow,
} from '@google/adk'

import { writeNotes } from '../events/event-notes.ts'
import { renameInterrupts } from '../events/input-calls.ts'
import { toSteps } from './node-runs.ts'
import { findTurn } from '../history/stored-turns.ts'
import { replaceRunMethod } from './run-methods.ts'
import { ARRANGED_CONTENTS } from '../adk-workarounds/arrange-calls.ts'
import { listNodeAgents, listTransferAgents } from './workflow-nodes.ts'
import type { NodeHooks } from './workflow-run.ts'
import { findRun, refuseIfStopped, registerRuns, untilStored, WorkflowRun } from './workflow-run.ts'

/**
 * Makes the nodes of a workflow wait for their calls and continue where they waited. ADK 2.0.0 resumes an agent in a workflow with its
 * input as a newer user message, which hides the confirmation, and starts nodes before the events of earlier ones are stored.
 *
 * The outcome of each node is stored as a note on an event without content. The workflow reads these notes, and nothing else, to find
 * the nodes that have ended. Runs that the bridge did not start are not affected.
 */
export function controlNodes(root: unknown, manager: PluginManager, hooks: NodeHooks): void {
  if (!isWorkflow(root)) return
  for (const agent of listNodeAgents(root)) {
    controlTransfers(agent)
    for (const each of listTransferAgents(agent)) controlRequests(each)
  }
  controlInput(root)
  const runs = registerRuns(manager)
  const before = manager.runBeforeNodeCallback.bind(manager)
  const after = manager.runAfterNodeCallback.bind(manager)
  manager.runBeforeNodeCallback = async (started) => {
    const { node, nodeContext } = started
    const { invocationContext, channel } = nodeContext
    const { invocationId } = invocationContext
    const messageId = hooks.findMessageId(invocationContext)
    // ADK reads the channel when this function has returned its promise.
    if (node === root && messageId !== undefined && !runs.has(invocationId)) {
      const onClose = (): boolean => runs.delete(invocationId)
      const stored = trackStored(channel, { onPush: prepareEvent, onClose })
      runs.set(invocationId, new WorkflowRun(root, { messageId, untilStored: stored, hooks }))
    }
    const skipped = await findRun(invocationContext)?.start(started)
    refuseIfStopped(nodeContext)
    return skipped === undefined ? before(started) : skipped
  }
  manager.runAfterNodeCallback = async (ended) => {
    const replaced = await after(ended)
    const output: unknown = replaced === undefined ? ended.output : replaced
    await findRun(ended.nodeContext.invocationContext)?.end({ ...ended, output })
    return replaced
  }
}

/** Starts a workflow with its own input, also if it continues after a pause. */
function controlInput(root: Workflow): void {
  replaceRunMethod<Workflow['run']>(root, 'run', (run) => (context, input) => {
    const found = findRun(context.invocationContext)
    return run.call(root, context, found ? found.readInput(context, input) : input)
  })
}

/** Continues a node at the agent to which it has transferred. ADK 2.0.0 would call the model of the node itself again. */
function controlTransfers(node: LlmAgent): void {
  if (node.subAgents.length === 0) return
  replaceRunMethod<LlmAgent['runAsync']>(node, 'runAsync', (run) => (context) => {
    const agent = findRun(context)?.takeTransfer(node, context)
    return agent ? agent.runAsync(context) : run.call(node, context)
  })
}

/** Adds the position in the workflow to the notes of an event, and gives its questions ids of their own. */
function prepareEvent(event: Event): void {
  const path = event.nodeInfo?.path
  if (event.partial || path === undefined || Object.isFrozen(event)) return
  renameInterrupts(event)
  event.customMetadata = writeNotes({ steps: toSteps(path) }, event.customMetadata)
}

/** Makes the model of an agent that is a node read what the session of its own turn contains. */
function controlRequests({ requestProcessors }: LlmAgent): void {
  if (requestProcessors.includes(STORED_FIRST)) return
  requestProcessors.unshift(STORED_FIRST)
  const index = requestProcessors.findIndex(
    (processor) => processor === CONTENT_REQUEST_PROCESSOR || processor === ARRANGED_CONTENTS,
  )
  if (index >= 0) requestProcessors.splice(index, 1, TURN_CONTENTS)
}

/** Lets an agent wait until its earlier events are stored. ADK 2.0.0 reads the session before that. */
const STORED_FIRST: BaseLlmRequestProcessor = {
  // oxlint-disable-next-line require-yield -- It only waits.
  async *runAsync(context) {
    await untilStored(context)
  },
}

/** Hides the turns that started while an agent waited, if the agent reads only the current turn. */
const TURN_CONTENTS: BaseLlmRequestProcessor = {
  async *runAsync(context, request) {
    // ADK runs resumed calls in the step in which the model reads their results.
    await untilStored(context)
    const { agent } = context
    const messageId = findRun(context)?.messageId
    const isAlone = isLlmAgent(agent) && agent.includeContents === 'none'
    const own =
      messageId !== undefined && isAlone ? viewTurn(context, messageId, agent.name) : context
    yield* ARRANGED_CONTENTS.runAsync(own, request)
  },
}

/**
 * Returns a context with the events of one turn. Responses from outside are events of the agent itself: ADK would leave out everything
 * before a response of the user, also the input of the agent. Responses to calls of other agents are left out.
 */
function viewTurn(
  context: InvocationContext,
  messageId: string,
  agentName: string,
): InvocationContext {
  const { session } = context
  const turn = findTurn(session.events, messageId)?.events ?? []
  const calls = turn.flatMap((event) =>
    event.author === agentName && event.branch === context.branch ? getFunctionCalls(event) : [],
  )
  const ids = new Set(calls.map(({ id }) => id))
  const isOwn = (event: Event): boolean => getFunctionResponses(event).some(({ id }) => ids.has(id))
  const events = turn.flatMap((event) => {
    if (isOwn(event)) return { ...event, author: agentName }
    const isForeign = event.author === 'user' && getFunctionResponses(event).length > 0
    return isForeign ? [] : event
  })
  const value = Object.create(session, { events: { value: events } }) as Session
  return Object.create(context, { session: { value } }) as InvocationContext
}

/**
 * Observes the events of a workflow on their way to the session. ADK 2.0.0 does not wait until they are stored. Call this before ADK reads
 * the channel. Returns a function that resolves when all events that were pushed so far are stored, or when the run has ended.
 */
function trackStored(
  channel: AsyncQueue<Event>,
  { onPush, onClose }: { readonly onPush: (event: Event) => void; readonly onClose: () => void },
): () => Promise<void> {
  let pushed = 0
  let taken = 0
  /** How many events are stored. Infinity when the run has ended. */
  let stored = 0
  let waiting: { readonly count: number; readonly resolve: () => void }[] = []
  const setStored = (count: number): void => {
    stored = Math.max(stored, count)
    if (waiting.length === 0) return
    for (const { resolve } of waiting.filter((each) => stored >= each.count)) resolve()
    waiting = waiting.filter((each) => stored < each.count)
  }
  const end = (): void => {
    setStored(Infinity)
    onClose()
  }
  const push = channel.push.bind(channel)
  const close = channel.close.bind(channel)
  const fail = channel.fail.bind(channel)
  const iterate = channel[Symbol.asyncIterator].bind(channel)
  Object.assign(channel, {
    push: (event: Event): void => {
      if (channel.isClosed) return
      pushed += 1
      onPush(event)
      push(event)
    },
    close: (): void => {
      close()
      end()
    },
    fail: (error: unknown): void => {
      fail(error)
      end()
    },
    // ADK asks for the next event when it has stored the one before.
    [Symbol.asyncIterator]: () => {
      const events = iterate()
      return {
        next: async (): Promise<IteratorResult<Event>> => {
          setStored(taken)
          const result = await events.next()
          if (result.done !== true) taken += 1
          return result
        },
      }
    },
  })
  return async () => {
    const count = pushed
    if (stored >= count) return
    await new Promise<void>((resolve) => {
      waiting.push({ count, resolve })
    })
  }
}
