import { isLlmAgent } from '@google/adk'
import { SpanStatusCode, trace } from '@opentelemetry/api'

import { toError } from '../agent/adk-workarounds/guard-tool.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import type { ToolErrors } from './tool-errors.ts'
import { returnsCaughtError } from '../agent/call-responses.ts'

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
