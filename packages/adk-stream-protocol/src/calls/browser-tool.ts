import type { BaseTool } from '@google/adk'
import { FunctionTool } from '@google/adk'
import { z } from 'zod'
import type { OutputResponse } from '../protocol/read-responses.ts'
import { toResponse } from '../agent/call-responses.ts'

/** What the model is told of a browser tool, and what is asked of the page. */
export interface BrowserToolOptions<Parameters extends z.ZodObject> {
  readonly name: string
  readonly description: string
  readonly parameters: Parameters
  /** What the client must give back. Default: anything. */
  readonly output?: z.ZodType
  /** How long the client may take, in ms. Default 120,000. */
  readonly timeoutMs?: number
  /** Whether a person decides first: always, or by the arguments. Default false. */
  readonly requireConfirmation?:
    | boolean
    | ((args: z.infer<Parameters>) => boolean | Promise<boolean>)
}

/** What the bridge must know of a tool that runs in the client. */
export interface BrowserTool {
  readonly timeoutMs: number
  readonly output: z.ZodType
}

const DEFAULT_TIMEOUT_MS = 120_000
const browserTools = new WeakMap<BaseTool, BrowserTool>()

/**
 * Declares a tool whose execution happens in the client, such as asking for the person's location: the turn pauses until the client
 * sends the output of the call.
 */
export function browserTool<Parameters extends z.ZodObject>(
  options: BrowserToolOptions<Parameters>,
): BaseTool {
  const { name, description, parameters, requireConfirmation = false } = options
  const tool = new FunctionTool({
    name,
    description,
    parameters,
    requireConfirmation: toRequirement(requireConfirmation, parameters),
    isLongRunning: true,
    // A long-running call without a result is one that somebody outside answers.
    execute: () => undefined,
  })
  const { timeoutMs = DEFAULT_TIMEOUT_MS, output = z.unknown() } = options
  browserTools.set(tool, { timeoutMs, output })
  return tool
}

/** Tells a tool that runs in the client from one that runs here. */
export function asBrowserTool(tool: BaseTool): BrowserTool | undefined {
  return browserTools.get(tool)
}

function toRequirement<Parameters extends z.ZodObject>(
  required: boolean | ((args: z.infer<Parameters>) => boolean | Promise<boolean>),
  parameters: Parameters,
): boolean | ((args: unknown) => Promise<boolean>) {
  if (typeof required === 'boolean') return required
  return async (args) => required(parameters.parse(args))
}

/** What a call ends with whose client did not give its output in time. */
export const BROWSER_TIMED_OUT = 'The browser did not respond in time.'

/** What a client gave as the output of a call, as the model is told it: checked by the tool's own schema. */
export function toBrowserResponse(
  result: OutputResponse['result'],
  { output }: BrowserTool,
): Record<string, unknown> {
  if ('errorText' in result) return { error: result.errorText }
  const parsed = output.safeParse(result.output)
  if (!parsed.success)
    return { error: 'The result of the browser does not match the schema of the tool.' }
  return toResponse(parsed.data)
}
