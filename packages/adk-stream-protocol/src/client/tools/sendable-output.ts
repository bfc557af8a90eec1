import type { ToolOutputGiven } from '../sync/attachable-chat.ts'

/** What cannot be written as JSON cannot be told; the model learns that, in place of an output that never comes. */
export function toSendable(given: ToolOutputGiven): ToolOutputGiven {
  if (given.state === 'output-error') return given
  const { tool, toolCallId } = given
  try {
    // `undefined`, and what is written as nothing, is nothing.
    return JSON.stringify(given.output) === undefined ? { ...given, output: null } : given
  } catch {
    const errorText = `The output of ${tool} cannot be written as JSON.`
    return { tool, toolCallId, state: 'output-error', errorText }
  }
}
