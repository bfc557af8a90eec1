import type { Event, NodeContext } from '@google/adk'
import { createEvent, generateClientFunctionCallId, ToolNode } from '@google/adk'

import { CONFIRMATION_TOOL } from '../../protocol/message.ts'
import { asksForApproval } from '../history/open-questions.ts'

/** A call of a tool that is a node. */
export interface NodeCall {
  /** The parts of the id, which ADK joins with `:`. */
  readonly name: string
  readonly run: string
  /** The arguments, when they are known. */
  args?: Record<string, unknown>
}

type Run = (context: NodeContext, input: unknown) => AsyncGenerator<Event, void>

const controlled = new WeakSet<ToolNode>()

/**
 * Lets a tool that is a node ask for approval. ADK 2.0.0 makes no event for the call, gives it the same id in each turn, and takes the
 * placeholder of a call that waits for its result. Runs for which `find` returns nothing are not affected.
 */
export function controlTool(
  node: ToolNode,
  find: (context: NodeContext) => NodeCall | undefined,
): void {
  if (controlled.has(node)) return
  controlled.add(node)
  const run = Reflect.get(node, 'runImpl') as Run
  const value = async function* runTool(context: NodeContext, input: unknown) {
    const call = find(context)
    if (!call) return yield* run.call(node, context, input)
    const own = Object.create(context, {
      nodePath: { value: call.name },
      runId: { value: call.run },
    }) as NodeContext
    for await (const event of run.call(node, own, input))
      yield asksForApproval(event) ? toRequest(node, call, event) : event
  }
  Reflect.defineProperty(node, 'runImpl', { value, configurable: true, writable: true })
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
