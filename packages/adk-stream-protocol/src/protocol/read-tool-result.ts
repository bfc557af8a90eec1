import { z } from 'zod'

import { CONFIRMATION_TOOL } from './confirmation-tool.ts'
import { ProtocolError } from './errors.ts'
import type { DecisionAnswer, OutputAnswer } from './read-answers.ts'

/** What a client of text frames says of a call: a decision about it, or what it gave. */
export interface ToolResult {
  readonly toolCallId: string
  readonly toolName?: string | undefined
  readonly result?: unknown
}

/** The approval that an id stands for: by its own id, or by that of the call that it is about. */
export interface NamedApproval {
  readonly by: 'approval' | 'call'
  readonly approvalId: string
  readonly toolCallId: string
  readonly toolName: string
  readonly messageId: string
  /** Whether it is not decided yet. */
  readonly waits: boolean
}

export type ReadResult = { readonly decision: DecisionAnswer } | { readonly output: OutputAnswer }

const Confirmation = z.object({ confirmed: z.boolean(), reason: z.string().max(2_000).optional() })
const Consent = z.object({
  approved: z.boolean(),
  user_message: z.string().max(2_000).optional(),
  reason: z.string().max(2_000).optional(),
})

/** Whether a result decides the approval that its id stands for. */
export function decides({ result }: ToolResult, known: NamedApproval | undefined): boolean {
  if (!known) return false
  return (known.by === 'approval' ? Confirmation : Consent).safeParse(result).success
}

/** Tells what a result means. What seed 003 calls mistakes is refused with what to send instead (BD7). */
export function readToolResult(given: ToolResult, known: NamedApproval | undefined): ReadResult {
  const { toolCallId, toolName, result } = given
  if (!known) {
    if (toolName === CONFIRMATION_TOOL) throw new ProtocolError('unknown-approval')
    return { output: { toolCallId, result: { output: result } } }
  }
  const expected = known.by === 'approval' ? CONFIRMATION_TOOL : known.toolName
  if (toolName !== undefined && toolName !== expected) {
    throw refuse(`The id ${toolCallId} is not of ${toolName}, but of ${expected}.`, known)
  }
  return known.by === 'approval' ? readConfirmation(result, known) : readOfCall(given, known)
}

function readConfirmation(result: unknown, known: NamedApproval): ReadResult {
  const { data } = Confirmation.safeParse(result)
  if (!data) throw refuse(`The result of ${CONFIRMATION_TOOL} has no \`confirmed\`.`, known)
  const { confirmed: approved, reason } = data
  return toDecision(known, approved, reason)
}

function readOfCall({ toolCallId, result }: ToolResult, known: NamedApproval): ReadResult {
  const { data } = Consent.safeParse(result)
  if (data) return toDecision(known, data.approved, data.user_message ?? data.reason)
  if (!known.waits) return { output: { toolCallId, result: { output: result } } }
  throw refuse(`${known.toolName} waits for approval, and has not run.`, known)
}

function toDecision(
  { approvalId }: NamedApproval,
  approved: boolean,
  reason: string | undefined,
): ReadResult {
  return { decision: { approvalId, approved, ...(reason !== undefined && { reason }) } }
}

function refuse(fault: string, { approvalId, toolCallId, toolName }: NamedApproval): ProtocolError {
  const question = `{ "confirmed": true or false } for ${CONFIRMATION_TOOL} under the id ${approvalId}`
  const call = `{ "approved": true or false, "user_message": text } for ${toolName} under the id ${toolCallId}`
  return new ProtocolError('bad-request', { message: `${fault} Send ${question}, or ${call}.` })
}
