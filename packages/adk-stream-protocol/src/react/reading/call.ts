import type { DynamicToolUIPart, ToolUIPart, UIMessage } from 'ai'

import { isRecord } from '../../protocol/guards.ts'

/** One call of a tool within a message. */
export type Call = ToolUIPart | DynamicToolUIPart

/** The arguments of a call. */
export type Arguments = Readonly<Record<string, unknown>>

type Part = UIMessage['parts'][number]

export function isCall(part: Part): part is Call {
  return part.type === 'dynamic-tool' || part.type.startsWith('tool-')
}

export function nameCall(call: Call): string {
  return call.type === 'dynamic-tool' ? call.toolName : call.type.slice('tool-'.length)
}

/** The arguments of a call by name; none while they are being written, or where they are not an object. */
export function argumentsOf({ input }: Pick<Call, 'input'>): Arguments {
  return isRecord(input) ? input : {}
}

/** Why a call that ended did not do what was asked. */
export interface Failure {
  /** In the tool's own words; absent if the tool gave none. */
  readonly reason?: string
}

/**
 * Reads whether a call failed: it ended with an error, or its result says so. A result says so with `success: false`, or with
 * `status: 'error'`, the form that ADK's documentation uses.
 */
export function readFailure(call: Call): Failure | undefined {
  if (call.state === 'output-error') return toFailure(call.errorText)
  if (call.state !== 'output-available' || !isRecord(call.output)) return undefined
  const { success, status, error, error_message: errorMessage, message } = call.output
  if (success !== false && status !== 'error') return undefined
  return toFailure([error, errorMessage, message].find((words) => typeof words === 'string'))
}

function toFailure(reason: unknown): Failure {
  return typeof reason === 'string' && reason !== '' ? { reason } : {}
}

/** Whether a call of this message still waits for a person, for the page or for the server. */
export function isWaiting({ parts }: Pick<UIMessage, 'parts'>): boolean {
  return parts.some((part) => isCall(part) && WAITING.has(part.state))
}

const WAITING: ReadonlySet<Call['state']> = new Set([
  'input-available',
  'approval-requested',
  'approval-responded',
])
