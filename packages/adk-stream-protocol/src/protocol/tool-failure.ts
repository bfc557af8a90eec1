import { isRecord } from './guards.ts'

/** The failure of a call, as its result reports it. */
export interface ReportedFailure {
  /** The tool's message, if it has one. */
  readonly reason?: string
}

/**
 * Returns the failure that the result of a tool reports: `success: false`, `status: 'error'` (the form in ADK's
 * documentation), or the `isError: true` of an MCP tool. Returns undefined for any other result.
 */
export function readReportedFailure(output: unknown): ReportedFailure | undefined {
  if (!isRecord(output)) return undefined
  const { success, status, error, error_message: errorMessage, message } = output
  if (output['isError'] === true && Array.isArray(output['content']))
    return toReportedFailure(readText(output['content']))
  if (success !== false && status !== 'error') return undefined
  return toReportedFailure([error, errorMessage, message].find((text) => typeof text === 'string'))
}

/** Returns the first text in the content of an MCP result. */
function readText(content: readonly unknown[]): unknown {
  return content.flatMap((part) =>
    isRecord(part) && part['type'] === 'text' ? part['text'] : [],
  )[0]
}

export function toReportedFailure(reason: unknown): ReportedFailure {
  return typeof reason === 'string' && reason !== '' ? { reason } : {}
}
