import type { BaseTool } from '@google/adk'
import { FunctionTool } from '@google/adk'
import { z } from 'zod'

import { toResponse } from '../../agent/call-responses.ts'
import { declareClientTool } from '../../calls/client-tool.ts'
import type { OutputResponse } from '../../protocol/read-responses.ts'
import type { TypedTool } from '../../protocol/typed-tool.ts'

/**
 * Options of {@link browserTool}.
 *
 * @inline
 */
export interface BrowserToolOptions<
  Name extends string,
  Parameters extends z.ZodObject,
  Output extends z.ZodType,
> {
  readonly name: Name
  readonly description: string
  readonly parameters: Parameters
  /** The schema of the result that the client sends. Default: any value. */
  readonly output?: Output
  /** How long the client may take, in ms. Default 120,000. Then the model learns that the browser did not respond. */
  readonly timeoutMs?: number
  /** Whether a call needs approval before it runs, for all arguments or depending on them. Default false. */
  readonly requireConfirmation?:
    | boolean
    | ((args: z.infer<Parameters>) => boolean | Promise<boolean>)
}

const DEFAULT_TIMEOUT_MS = 120_000

/** The result of a call whose client did not send one in time. */
export const BROWSER_TIMED_OUT = { errorText: 'The browser did not respond in time.' } as const

/**
 * Creates a tool that runs in the client, for example to read the user's location. The turn pauses until the client
 * sends the result.
 */
export function browserTool<
  const Name extends string,
  Parameters extends z.ZodObject,
  Output extends z.ZodType = z.ZodUnknown,
>(
  options: BrowserToolOptions<Name, Parameters, Output>,
): BaseTool & TypedTool<Name, z.infer<Parameters>, z.infer<Output>> {
  const { name, description, parameters, requireConfirmation = false } = options
  const tool = new FunctionTool({
    name,
    description,
    parameters,
    requireConfirmation: toRequirement(requireConfirmation, parameters),
    isLongRunning: true,
    // ADK treats a long-running call without a result as one that is completed from outside.
    execute: () => undefined,
  })
  const { timeoutMs = DEFAULT_TIMEOUT_MS, output = z.unknown() } = options
  declareClientTool(tool, {
    timeoutMs,
    timedOut: BROWSER_TIMED_OUT,
    toResponse: (result) => toBrowserResponse(result, output),
  })
  // Only for its type: ADK's class declares its name as any string.
  return Object.assign(tool, { name })
}

function toRequirement<Parameters extends z.ZodObject>(
  required: boolean | ((args: z.infer<Parameters>) => boolean | Promise<boolean>),
  parameters: Parameters,
): boolean | ((args: unknown) => Promise<boolean>) {
  if (typeof required === 'boolean') return required
  return async (args) => required(parameters.parse(args))
}

/** Converts the result of a client to the response for the model. Validates it against the schema of the tool. */
function toBrowserResponse(
  result: OutputResponse['result'],
  output: z.ZodType,
): Record<string, unknown> {
  if ('errorText' in result) return { error: result.errorText }
  const parsed = output.safeParse(result.output)
  if (!parsed.success)
    return { error: 'The result of the browser does not match the schema of the tool.' }
  return toResponse(parsed.data)
}
