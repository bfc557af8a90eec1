import type { BaseTool } from '@google/adk'
import { isFunctionTool, RestApiTool } from '@google/adk'
import * as z from 'zod'

import { APPROVAL_UNAVAILABLE } from './call-responses.ts'
import type { ToolCall } from './tool-call.ts'

/** A call inside an `AgentTool` needs approval, which cannot be requested there. */
export class ApprovalUnavailableError extends Error {
  override readonly name = 'ApprovalUnavailableError'

  constructor(toolName: string, agentName: string) {
    super(
      `Not run: the tool ${toolName} needs the approval of a person, but approval cannot be requested inside ${agentName}, because it is used as a tool. Make ${agentName} a sub-agent and let the parent transfer to it.`,
    )
  }
}

/**
 * Returns the response for the model to a call that threw. The message of an error may contain addresses, paths and
 * secrets, so the model only learns what is wrong with its arguments.
 */
export function describeToolError(
  { tool, toolArgs }: ToolCall,
  error: unknown,
  exposeErrors: boolean,
): Record<string, unknown> {
  if (error instanceof ApprovalUnavailableError) return APPROVAL_UNAVAILABLE
  if (exposeErrors) return { error: error instanceof Error ? error.message : String(error) }
  const issues = findIssues(tool, toolArgs)
  return { error: issues === undefined ? describeToolFailure(tool.name) : `Not run: ${issues}` }
}

/** Returns the message for a tool that failed. */
export function describeToolFailure(toolName: string): string {
  return `The tool ${toolName} failed.`
}

/** Whether a tool returned the message of an error that it caught. ADK's OpenAPI tools do that when a request fails. */
export function returnsCaughtError(tool: BaseTool, result: unknown): boolean {
  if (!(tool instanceof RestApiTool)) return false
  const caught = CaughtError.safeParse(result)
  return caught.success && caught.data.error.startsWith('Failed to execute API call')
}

const CaughtError = z.strictObject({ error: z.string() })

/** Returns a description of arguments that do not match the schema of a tool. Returns undefined if the schema cannot be checked. */
function findIssues(tool: BaseTool, args: unknown): string | undefined {
  // ADK declares the schema private. It may come from another copy of zod, or not from zod at all.
  const parameters: unknown = isFunctionTool(tool) && Reflect.get(tool, 'parameters')
  if (typeof parameters !== 'object' || parameters === null || !('safeParse' in parameters))
    return undefined
  try {
    const { safeParse } = parameters
    const parsed: unknown = typeof safeParse === 'function' && safeParse.call(parameters, args)
    return describeIssues(FailedParse.safeParse(parsed).data?.error)
  } catch {
    return undefined
  }
}

const FailedParse = z.object({ success: z.literal(false), error: z.unknown() })

/** Describes a validation error of zod. Returns undefined for any other error. */
export function describeIssues(error: unknown): string | undefined {
  const failed = ArgumentIssues.safeParse(error)
  if (!failed.success) return undefined
  const descriptions = failed.data.issues.map(
    ({ path, message }) => `${path.join('.')}: ${message}.`,
  )
  return `the arguments do not match the schema of the tool. ${descriptions.join(' ')}`
}

const ArgumentIssues = z.object({
  name: z.enum(['ZodError', '$ZodError']),
  issues: z.array(
    z.object({ path: z.array(z.union([z.string(), z.number()])), message: z.string() }),
  ),
})
