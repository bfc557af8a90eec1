import type { OutputAnswer } from '../protocol/read-answers.ts'
import { toResponse } from '../agent/call-responses.ts'
import type { BrowserTool } from './browser-tool.ts'

/** What a call ends with whose client did not give its output in time. */
export const NO_ANSWER = 'The browser did not answer in time.'

/** What a client gave as the output of a call, as the model is told it: checked by the tool's own schema. */
export function toBrowserResponse(
  result: OutputAnswer['result'],
  { output }: BrowserTool,
): Record<string, unknown> {
  if ('errorText' in result) return { error: result.errorText }
  const parsed = output.safeParse(result.output)
  if (!parsed.success) return { error: 'The browser gave a result of the wrong shape.' }
  return toResponse(parsed.data)
}
