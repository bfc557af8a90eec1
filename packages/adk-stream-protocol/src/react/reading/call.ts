import type { DynamicToolUIPart, ToolUIPart, UIMessage } from 'ai'

import { isRecord } from '../../protocol/guards.ts'
import {
  readReportedFailure,
  toReportedFailure,
  type ReportedFailure,
} from '../../protocol/message.ts'

/** A tool call in a message: a tool part of the AI SDK. */
export type Call = ToolUIPart | DynamicToolUIPart

/** Whether the output of a call says that it has not ended: it waits in another system, or for an approval inside the agent that it runs. */
export function isUnfinished({ state, output }: Call): boolean {
  return state === 'output-available' && isRecord(output) && output['status'] === 'pending'
}

/**
 * The arguments of a tool call.
 *
 * @inline
 */
export type Arguments = Readonly<Record<string, unknown>>

/**
 * How far a call that needs approval has come. `pending`: it has not ended.
 *
 * @inline
 */
export type CallPhase =
  | 'pending'
  | 'succeeded'
  | 'failed'
  | 'denied'
  | 'expired'
  | 'cancelled'
  | 'unknown'

type Part = UIMessage['parts'][number]

export function isCall(part: Part): part is Call {
  return part.type === 'dynamic-tool' || part.type.startsWith('tool-')
}

export function getToolName(call: Call): string {
  return call.type === 'dynamic-tool' ? call.toolName : call.type.slice('tool-'.length)
}

/** Returns the arguments of a call. Empty while they are streamed, or if they are not an object. */
export function getArguments({ input }: Pick<Call, 'input'>): Arguments {
  return isRecord(input) ? input : {}
}

/**
 * Returns the failure of a call, or undefined if it did not fail. A call fails with an error, or with a result that
 * reports a failure. `outcome` is what the server says about an approved call.
 */
export function readFailure(
  call: Call,
  outcome?: 'succeeded' | 'failed',
): ReportedFailure | undefined {
  if (call.state === 'output-error') return toReportedFailure(call.errorText)
  if (call.state !== 'output-available' || outcome === 'succeeded') return undefined
  const reported = readReportedFailure(call.output)
  return outcome === 'failed' ? (reported ?? {}) : reported
}

/** Returns whether a call of this message waits for a person, the page or the server. */
export function isWaiting({ parts }: Pick<UIMessage, 'parts'>): boolean {
  return parts.some((part) => isCall(part) && WAITING.has(part.state))
}

const WAITING: ReadonlySet<Call['state']> = new Set([
  'input-available',
  'approval-requested',
  'approval-responded',
])
