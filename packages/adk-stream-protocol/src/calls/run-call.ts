import type { Context } from '@google/adk'
import { isLlmAgent } from '@google/adk'
import { SpanStatusCode, trace } from '@opentelemetry/api'

import { toError, guardTool } from '../agent/adk-workarounds/guard-tool.ts'
import { QuietPlugin } from '../agent/adk-workarounds/plugin-callbacks.ts'
import {
  returnsCaughtError,
  describeToolError,
  ApprovalUnavailableError,
} from '../agent/call-responses.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import { guardNested } from '../agent/tree/guard-nested.ts'

/** The outcome of a call. A callback may return a result instead of the tool, or for a tool that failed. */
export type CallOutcome =
  | { readonly by: 'tool'; readonly result: unknown }
  | { readonly by: 'callback'; readonly result: unknown }
  | {
      readonly by: 'failure'
      readonly result: unknown
      readonly error: Error
      /** Whether the result contains the error message, which clients may not see. */
      readonly hidden: boolean
    }

/**
 * Runs a call as ADK does: the callbacks before it, of plugins and of the agent, then the tool, then the error
 * callbacks. ADK runs the callbacks after it when it receives the result. Throws if a callback throws.
 */
export async function runCall(call: ToolCall, errors: ToolErrors): Promise<CallOutcome> {
  const { tool, toolArgs, toolContext } = call
  errors.guard(call)
  const replacement = await runBeforeCallbacks(call)
  if (replacement) return { by: 'callback', result: replacement }
  try {
    const result = await traceTool(call)
    return returnsCaughtError(tool, result)
      ? failWith(call, result, errors)
      : { by: 'tool', result }
  } catch (thrown) {
    const error = toError(thrown)
    const { pluginManager } = toolContext.invocationContext
    const failure = { tool, toolArgs, toolContext, error }
    const response: unknown = await pluginManager.runOnToolErrorCallback(failure)
    const result = response ?? errors.respond(call, error)
    return { by: 'failure', result, error, hidden: errors.hasResponded(toolContext) }
  }
}

/** Returns the failure of a tool that returned an error message. */
function failWith(call: ToolCall, returned: unknown, errors: ToolErrors): CallOutcome {
  const error = new Error(JSON.stringify(returned))
  const result = errors.respondToCaught(call, error)
  return { by: 'failure', result, error, hidden: errors.hasResponded(call.toolContext) }
}

async function runBeforeCallbacks({ tool, toolArgs, toolContext }: ToolCall): Promise<unknown> {
  const { agent, pluginManager } = toolContext.invocationContext
  const replacement: unknown = await pluginManager.runBeforeToolCallback({
    tool,
    toolArgs,
    toolContext,
  })
  if (replacement !== undefined && replacement !== null) return replacement
  for (const callback of isLlmAgent(agent) ? agent.canonicalBeforeToolCallbacks : []) {
    const result = await callback({ tool, args: toolArgs, context: toolContext })
    if (result) return result
  }
  return undefined
}

/** Runs the tool in a span like ADK's, without arguments and results (OB2). */
async function traceTool({ tool, toolArgs: args, toolContext }: ToolCall): Promise<unknown> {
  const tracer = trace.getTracer('adk-stream-protocol')
  return tracer.startActiveSpan(`execute_tool ${tool.name}`, async (span) => {
    span.setAttributes({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': tool.name,
      'gen_ai.tool.call.id': toolContext.functionCallId ?? '',
    })
    try {
      return await tool.runAsync({ args, toolContext })
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR })
      throw error
    } finally {
      span.end()
    }
  })
}

interface ToolErrorsOptions {
  /** Whether the model may read the message of an error that a tool threw. */
  readonly exposeErrors: boolean
  /** Receives each call that this plugin responded for. */
  readonly onFailure?: (call: ToolCall) => void
  /** Receives errors that a tool caught itself. ADK does not report them. */
  readonly onError?: (error: unknown) => void
  /** Receives errors that tools threw inside an agent that is used as a tool. ADK does not report them. */
  readonly onNestedError: (error: unknown) => void
}

/** The last plugin of a run. Responds for a tool that threw, unless a plugin of the host did. */
export class ToolErrors extends QuietPlugin {
  readonly #options: ToolErrorsOptions
  readonly #responded = new WeakSet<Context>()

  constructor(options: ToolErrorsOptions) {
    super('adk-stream-protocol:tool-errors')
    this.#options = options
  }

  /** Whether this plugin made the response of a call, so that clients may not see it. */
  hasResponded(toolContext: Context): boolean {
    return this.#responded.has(toolContext)
  }

  /** Call this before a tool runs, so that this plugin sees everything that the tool throws. */
  guard(call: ToolCall): void {
    guardTool(call.tool)
    if (!this.#options.exposeErrors) guardNested(call, (inner, error) => this.#hide(inner, error))
  }

  /** Returns the response for the model to a failed call. */
  respond(call: ToolCall, error: unknown): Record<string, unknown> {
    const { exposeErrors, onFailure } = this.#options
    if (exposeErrors) this.#responded.add(call.toolContext)
    if (exposeErrors) onFailure?.(call)
    return describeToolError(call, error, exposeErrors)
  }

  /** Like `respond`, for a tool that returned an error message. */
  respondToCaught(call: ToolCall, error: Error): Record<string, unknown> {
    this.#options.onError?.(error)
    return this.respond(call, error)
  }

  #hide(call: ToolCall, error: Error): Error {
    // This message is our own.
    if (error instanceof ApprovalUnavailableError) return error
    this.#options.onNestedError(error)
    return new Error(String(describeToolError(call, error, false)['error']), { cause: error })
  }

  override async onToolErrorCallback(
    call: ToolCall & { readonly error: Error },
  ): Promise<Record<string, unknown>> {
    return this.respond(call, call.error)
  }

  override async afterToolCallback(
    call: ToolCall & { readonly result: Record<string, unknown> | null | undefined },
  ): Promise<Record<string, unknown> | undefined> {
    const { tool, result } = call
    if (!returnsCaughtError(tool, result)) return undefined
    return this.respondToCaught(call, new Error(String(result?.['error'])))
  }
}
