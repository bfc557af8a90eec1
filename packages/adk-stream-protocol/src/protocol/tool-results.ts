import { z } from 'zod'

import { ProtocolError } from './errors.ts'
import { CONFIRMATION_TOOL } from './message.ts'
import type { DecisionResponse, OutputResponse, ToolResult } from './read-responses.ts'

/** The approval that an id refers to, by its own id or by the id of its call. */
export interface NamedApproval {
  readonly by: 'approval' | 'call'
  readonly approvalId: string
  readonly toolCallId: string
  readonly toolName: string
  readonly messageId: string
  /** Whether the approval is pending. */
  readonly waits: boolean
  /** Whether it is a question, whose answer is the result of its call. */
  readonly isQuestion?: boolean
}

type ReadResult = { readonly decision: DecisionResponse } | { readonly output: OutputResponse }

const Confirmation = z.object({
  confirmed: z.boolean(),
  reason: z.string().max(2_000).optional(),
  payload: z.unknown().optional(),
})
const Consent = z.object({
  approved: z.boolean(),
  payload: z.unknown().optional(),
  user_message: z.string().max(2_000).optional(),
  reason: z.string().max(2_000).optional(),
})

/** Whether a result is a decision about the approval that its id refers to. */
export function decides({ result }: ToolResult, known: NamedApproval | undefined): boolean {
  if (!known || (known.isQuestion && known.by === 'call')) return false
  return (known.by === 'approval' ? Confirmation : Consent).safeParse(result).success
}

/**
 * Interprets a result as a decision or as an output. Throws an error that says what to send if the name, the id or
 * the result does not match (DI3).
 */
export function readToolResult(response: ToolResult, known: NamedApproval | undefined): ReadResult {
  const { toolCallId, toolName, result } = response
  if (!known) {
    if (toolName === CONFIRMATION_TOOL) throw new ProtocolError('unknown-approval')
    return { output: { toolCallId, result: { output: result } } }
  }
  // The server turns the output of a question into its answer.
  if (known.isQuestion && known.by === 'call' && toolName !== CONFIRMATION_TOOL)
    return { output: { toolCallId, result: { output: result } } }
  const expected = known.by === 'approval' ? CONFIRMATION_TOOL : known.toolName
  if (toolName !== undefined && toolName !== expected) {
    throw createMismatchError(
      `The id ${toolCallId} belongs to ${expected}, not to ${toolName}.`,
      known,
    )
  }
  const decided = known.by === 'approval' ? readConfirmation(result, known) : readConsent(result)
  if (decided) return { decision: toDecision(decided, response, known) }
  if (!known.waits) return { output: { toolCallId, result: { output: result } } }
  throw createAwaitingApprovalError(known)
}

/** Returns the error for the output of a call that waits for approval. It says what to send instead. */
export function createAwaitingApprovalError(known: NamedApproval): ProtocolError {
  return createMismatchError(`${known.toolName} waits for approval and has not run.`, known)
}

interface Decided {
  readonly approved: boolean
  readonly reason: string | undefined
  readonly payload: unknown
}

function readConfirmation(result: unknown, known: NamedApproval): Decided {
  const { data } = Confirmation.safeParse(result)
  if (!data)
    throw createMismatchError(`The result of ${CONFIRMATION_TOOL} has no \`confirmed\`.`, known)
  return { approved: data.confirmed, reason: data.reason, payload: data.payload }
}

function readConsent(result: unknown): Decided | undefined {
  const { data } = Consent.safeParse(result)
  if (!data) return undefined
  const { approved, user_message: userMessage, reason = userMessage, payload } = data
  return { approved, reason: userMessage ?? reason, payload }
}

function toDecision(
  { approved, reason, payload: own }: Decided,
  { editedArgs, payload = own, preview, offer }: ToolResult,
  { approvalId }: NamedApproval,
): DecisionResponse {
  return {
    approvalId,
    approved,
    ...(reason !== undefined && { reason }),
    ...(editedArgs && { editedArgs }),
    ...(payload !== undefined && { payload }),
    ...(preview !== undefined && { preview }),
    ...(offer !== undefined && { offer }),
  }
}

function createMismatchError(
  fault: string,
  { approvalId, toolCallId, toolName }: NamedApproval,
): ProtocolError {
  const question = `{ "confirmed": true or false } for ${CONFIRMATION_TOOL} under the id ${approvalId}`
  const call = `{ "approved": true or false, "user_message": text } for ${toolName} under the id ${toolCallId}`
  return new ProtocolError('bad-request', { message: `${fault} Send ${question}, or ${call}.` })
}
