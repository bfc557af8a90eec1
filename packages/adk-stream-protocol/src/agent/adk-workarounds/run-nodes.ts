import type { Event, LlmAgent, PluginManager, Workflow } from '@google/adk'
import { isWorkflow } from '@google/adk'

import { writeNotes } from '../history/event-notes.ts'
import { renameInterrupts } from '../history/input-calls.ts'
import { StoredQueue } from './stored-queue.ts'
import { listNodeAgents, listTransferAgents } from './workflow-nodes.ts'
import type { NodeHooks } from './workflow-run.ts'
import { findRun, refuseIfStopped, registerRuns, toSteps, WorkflowRun } from './workflow-run.ts'
import { controlRequests } from './node-requests.ts'

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
      const queue = new StoredQueue(channel, { onPush: prepareEvent, onClose })
      runs.set(invocationId, new WorkflowRun(root, { messageId, queue, hooks }))
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

const controlled = new WeakSet<Workflow>()

/** Starts a workflow with its own input, also if it continues after a pause. */
function controlInput(root: Workflow): void {
  if (controlled.has(root)) return
  controlled.add(root)
  const run = root.run.bind(root)
  root.run = (context, input) => {
    const found = findRun(context.invocationContext)
    return run(context, found ? found.readInput(context, input) : input)
  }
}

const redirected = new WeakSet<LlmAgent>()

/** Continues a node at the agent to which it has transferred. ADK 2.0.0 would call the model of the node itself again. */
function controlTransfers(node: LlmAgent): void {
  if (node.subAgents.length === 0 || redirected.has(node)) return
  redirected.add(node)
  const run = node.runAsync.bind(node)
  node.runAsync = (context) => {
    const agent = findRun(context)?.takeTransfer(node, context)
    return agent ? agent.runAsync(context) : run(context)
  }
}

/** Adds the position in the workflow to the notes of an event, and gives its questions ids of their own. */
function prepareEvent(event: Event): void {
  const path = event.nodeInfo?.path
  if (event.partial || path === undefined || Object.isFrozen(event)) return
  renameInterrupts(event)
  event.customMetadata = writeNotes({ steps: toSteps(path) }, event.customMetadata)
}
