import { isRecord } from './guards.ts'

/** The failure of a call, as its result reports it. */
export interface ReportedFailure {
  /** The tool's message, if it has one. */
  readonly reason?: string
}

/**
 * Returns the failure that the result of a tool reports: `success: false`, or `status: 'error'` (the form in ADK's
 * documentation). Returns undefined for any other result.
 */
export function readReportedFailure(output: unknown): ReportedFailure | undefined {
  if (!isRecord(output)) return undefined
  const { success, status, error, error_message: errorMessage, message } = output
  if (success !== false && status !== 'error') return undefined
  return toReportedFailure([error, errorMessage, message].find((text) => typeof text === 'string'))
}

export function toReportedFailure(reason: unknown): ReportedFailure {
  return typeof reason === 'string' && reason !== '' ? { reason } : {}
}
