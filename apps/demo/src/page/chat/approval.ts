import { type DynamicToolUIPart, isToolUIPart, type ToolUIPart } from 'ai'
import { z } from 'zod'

import type { Message } from './message.ts'

/** One call of a tool within a message. */
export type Call = ToolUIPart | DynamicToolUIPart

export const Arguments = z.record(z.string(), z.unknown())
export type Arguments = z.infer<typeof Arguments>

export const Severity = z.enum(['low', 'medium', 'high'])
export type Severity = z.infer<typeof Severity>

/** What the bridge tells about an approval beside the call it is about. */
const Approval = z.object({
  approvalId: z.string(),
  toolCallId: z.string(),
  state: z.enum(['requested', 'approved', 'denied', 'expired', 'cancelled', 'unknown']),
  title: z.string().optional(),
  hint: z.string().optional(),
  severity: Severity.optional(),
  deadline: z.number().optional(),
  approvers: z.number().optional(),
  reason: z.string().optional(),
  editedArgs: Arguments.optional(),
})
export type Approval = z.infer<typeof Approval>

const ApprovalPart = z.object({ type: z.literal('data-approval'), data: Approval })

/** What a person answers. */
export interface Decision {
  readonly approved: boolean
  readonly reason?: string
  /** What is to run in place of the arguments shown. */
  readonly args?: Arguments
}

/** The approvals of a message, by the call they are about. */
export function readApprovals({ parts }: Pick<Message, 'parts'>): ReadonlyMap<string, Approval> {
  const approvals = parts.flatMap((part) => ApprovalPart.safeParse(part).data?.data ?? [])
  return new Map(approvals.map((approval) => [approval.toolCallId, approval]))
}

/** The calls of a message. */
export function readCalls({ parts }: Pick<Message, 'parts'>): Call[] {
  return parts.filter(isToolUIPart)
}

/** Whether a call of this message still waits for a person or for the browser. */
export function isWaiting(message: Message): boolean {
  return readCalls(message).some(({ state }) => WAITING.has(state))
}

const WAITING: ReadonlySet<Call['state']> = new Set([
  'input-available',
  'approval-requested',
  'approval-responded',
])
