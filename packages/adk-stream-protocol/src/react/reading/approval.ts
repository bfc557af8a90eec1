import type { UIMessage } from 'ai'

import type { DataParts } from '../../protocol/message.ts'
import { type Arguments, type Call, isCall } from './call.ts'
import { isRecord } from '../../protocol/guards.ts'
import type { ShownPreview } from '../../protocol/preview.ts'
import type { PendingApproval } from '../../protocol/server-views.ts'
import type { WaitingDecisions } from '../../client/api/decision-outbox.ts'

/** An approval, as the message contains it. */
export interface Approval extends Omit<
  DataParts['approval'],
  'toolCallId' | 'icon' | 'payload' | 'preview'
> {
  /** What the call would do. Undefined if the policy gives no preview, or if it cannot be made. */
  readonly preview?: ShownPreview | undefined
  /** Whether the tool asks for a value with the decision. */
  readonly hasPayload?: true
  /** Whether the person can edit the arguments. False for approvals of a plain AI SDK server and those that need several people. */
  readonly editable: boolean
  /** Whether the AI SDK sends the person's decision only together with those about the other calls of the message. */
  readonly isHeld?: boolean
}

/**
 * What the messages do not contain about a pending approval, as the server last reported it.
 *
 * @inline
 */
export interface ApprovalDetails {
  /** What the call would do now. Undefined if it cannot be determined. */
  readonly preview?: ShownPreview | undefined
  /** The JSON Schema of the arguments, if this person can edit them. */
  readonly argsSchema?: Readonly<Record<string, unknown>> | undefined
}

/**
 * The votes on an approval that needs several people.
 *
 * @inline
 */
export interface Votes {
  /** How many people have approved. */
  readonly given: number
  /** Whether this person is among them. */
  readonly voted: boolean
  /** The version of the approval. The highest version is current, because a vote can be withdrawn. */
  readonly version?: number | undefined
}

/** A person's decision on an approval. */
export interface Decision {
  readonly approved: boolean
  /** The model receives it if the call is denied. */
  readonly reason?: string
  /** Edited arguments, which run instead of the requested ones. */
  readonly args?: Arguments
  /** The response to a tool that requested confirmation with a payload. */
  readonly payload?: unknown
  /** The digest of the preview that the person saw. */
  readonly preview?: string
  /** The id of the grant that the person chose, of those that the approval offers. */
  readonly offer?: string
}

/** Returns the approvals of a message by `toolCallId`: those of the bridge and those of a plain AI SDK server. */
export function readApprovals({ parts }: Pick<UIMessage, 'parts'>): ReadonlyMap<string, Approval> {
  const approvals = new Map<string, Approval>()
  const calls = parts.filter(isCall)
  const isHeld = calls.some(({ state }) => state === 'approval-requested')
  for (const call of calls) {
    const approval = readFromCall(call)
    if (approval) approvals.set(call.toolCallId, isHeld ? { ...approval, isHeld } : approval)
  }
  for (const part of parts) {
    if (part.type !== 'data-approval' || !('data' in part) || !isApprovalData(part.data)) continue
    const { toolCallId, icon: _icon, payload, ...approval } = part.data
    approvals.set(toolCallId, {
      ...approval,
      editable: (approval.approvers ?? 1) === 1,
      ...(payload !== undefined && { hasPayload: true as const }),
    })
  }
  return approvals
}

/** Returns whether a call waits for a decision. The approval part may report a decision before the call's state changes. */
export function isPending(call: Call, { state, kind }: Approval): boolean {
  const asked = kind === undefined ? 'approval-requested' : 'input-available'
  return call.state === asked && state === 'requested'
}

/** Returns whether a decision may be sent later than it was made. An approval of high severity is made with the current state in view. */
export function mayWait(
  { approved }: Pick<Decision, 'approved'>,
  approval: { readonly severity?: Approval['severity'] | undefined } | undefined,
): boolean {
  return !approved || approval?.severity !== 'high'
}

/** Returns whether an entry asks for an answer, in a form by its schema. */
export function asksForAnswer({ kind }: { readonly kind?: Approval['kind'] | undefined }): boolean {
  return kind === 'input' || kind === 'elicitation'
}

/** Reads the AI SDK's own approval of a call. */
function readFromCall(call: Call): Approval | undefined {
  const { approval } = call
  // A rule of the application decided, and no person was asked.
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

/** Another server may use `data-approval` for something else. */
function isApprovalData(data: unknown): data is DataParts['approval'] {
  if (!isRecord(data)) return false
  const { approvalId, toolCallId, state } = data
  return typeof approvalId === 'string' && typeof toolCallId === 'string' && STATES.has(state)
}

/** Whether a listed approval waits for this person. Their votes stay in the list, to be withdrawn. */
export function isUndecided({ voted, mayDecide = true }: PendingApproval): boolean {
  return !voted && mayDecide
}

/** A call that waits for a decision of this person. */
export interface UndecidedCall {
  readonly call: Call
  /** With the current preview. */
  readonly approval: Approval
}

interface DecidedChat {
  readonly messages: readonly UIMessage[]
  readonly votes: ReadonlyMap<string, Votes>
  readonly details: ReadonlyMap<string, ApprovalDetails>
  readonly unconfirmed: ReadonlySet<string>
  readonly waitingDecisions: WaitingDecisions
}

/** Returns the calls of a chat that this person has not decided, the oldest first. */
export function findUndecided(chat: DecidedChat): UndecidedCall[] {
  return chat.messages.flatMap(findPending).flatMap(({ call, approval }) => {
    const { approvalId } = approval
    const isDecided =
      chat.votes.get(approvalId)?.voted === true ||
      chat.unconfirmed.has(approvalId) ||
      chat.waitingDecisions.has(approvalId)
    const current = chat.details.get(approvalId)
    const preview = current ? current.preview : approval.preview
    return isDecided ? [] : [{ call, approval: { ...approval, preview } }]
  })
}

/** The pending calls of messages. While a reply is streamed, a page renders often, and all other messages stay the same objects. */
const PENDING = new WeakMap<UIMessage, readonly UndecidedCall[]>()

/** Returns the calls of a message that wait for a decision. */
export function findPending(message: UIMessage): readonly UndecidedCall[] {
  const known = PENDING.get(message)
  if (known) return known
  const approvals = readApprovals(message)
  const pending = message.parts.filter(isCall).flatMap((call) => {
    const approval = approvals.get(call.toolCallId)
    return approval && isPending(call, approval) ? [{ call, approval }] : []
  })
  PENDING.set(message, pending)
  return pending
}
