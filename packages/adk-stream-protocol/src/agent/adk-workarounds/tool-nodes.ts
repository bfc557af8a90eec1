import type { Event, NodeContext, ToolNode } from '@google/adk'
import { createEvent, generateClientFunctionCallId, ToolConfirmation } from '@google/adk'

import { CONFIRMATION_TOOL } from '../../protocol/message.ts'
import { asksForApproval } from '../history/open-questions.ts'
import { findToolNodeCall } from '../history/node-runs.ts'
import type { ToolCall } from '../tool-call.ts'
import { createToolNodeCallId } from '../tool-call.ts'
import { InterruptedNodeError } from './workflow-nodes.ts'

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
