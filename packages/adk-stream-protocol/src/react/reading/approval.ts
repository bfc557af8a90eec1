import type { UIMessage } from 'ai'

import type { DataParts } from '../../protocol/message.ts'
import type { Arguments, Call } from './call.ts'
import { isRecord } from '../../protocol/guards.ts'
import { isCall } from './call.ts'

/** What is known of an approval beside the call it is about. */
export interface Approval extends Omit<DataParts['approval'], 'toolCallId' | 'icon' | 'payload'> {
  /** Whether other arguments can travel with it; an approval of the AI SDK alone has no place for them. */
  readonly editable: boolean
}

/** How far an approval of several people has come. */
export interface Votes {
  /** How many have approved. */
  readonly given: number
  /** Whether the reader is among them. */
  readonly voted: boolean
  /** Counts the changes of the approval: votes may be taken back, and the newest answer counts. */
  readonly version?: number | undefined
}

/** What a person answers. */
export interface Decision {
  readonly approved: boolean
  readonly reason?: string
  /** What is to run in place of the arguments shown. */
  readonly args?: Arguments
  /** The answer to a tool that asked with a payload. */
  readonly payload?: unknown
}

/** The approvals of a message, by the call they are about: those of the bridge, and those that only the AI SDK knows of. */
export function readApprovals({ parts }: Pick<UIMessage, 'parts'>): ReadonlyMap<string, Approval> {
  const approvals = new Map<string, Approval>()
  for (const part of parts) {
    const own = isCall(part) ? readOwn(part) : undefined
    if (isCall(part) && own) approvals.set(part.toolCallId, own)
  }
  for (const part of parts) {
    if (part.type !== 'data-approval' || !('data' in part) || !isTold(part.data)) continue
    const { toolCallId, icon: _icon, payload: _payload, ...told } = part.data
    approvals.set(toolCallId, { ...told, editable: (told.approvers ?? 1) === 1 })
  }
  return approvals
}

/** Whether a call waits for a decision; it may have been made where this message did not hear of it. */
export function isPending(call: Call, { state }: Approval): boolean {
  return call.state === 'approval-requested' && state === 'requested'
}

/** What the call itself says of its approval. */
function readOwn(call: Call): Approval | undefined {
  const { approval } = call
  // Nobody was asked: what a rule of the application decided is a call like any other.
  if (!approval || ('isAutomatic' in approval && approval.isAutomatic === true)) return undefined
  return {
    approvalId: approval.id,
    state: stateOf(call),
    editable: false,
    ...(approval.reason !== undefined && { reason: approval.reason }),
  }
}

function stateOf({ state, approval }: Call): Approval['state'] {
  if (state === 'output-denied') return 'denied'
  const isOver = state === 'output-available' || state === 'output-error'
  return isOver && approval?.approved === true ? 'approved' : 'requested'
}

const STATES: ReadonlySet<unknown> = new Set<Approval['state']>([
  'requested',
  'approved',
  'denied',
  'expired',
  'cancelled',
  'unknown',
])

/** Another server than the bridge may use the name for something else. */
function isTold(data: unknown): data is DataParts['approval'] {
  if (!isRecord(data)) return false
  const { approvalId, toolCallId, state } = data
  return typeof approvalId === 'string' && typeof toolCallId === 'string' && STATES.has(state)
}
