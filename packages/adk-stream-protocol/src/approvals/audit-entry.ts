import type { ApprovalTerms } from './approval.ts'
import type { DecisionEvidence } from '../protocol/decision-evidence.ts'
import type { Preview, ShownPreview } from '../protocol/preview.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'
import type { FeatureDecision, FeatureEvent, UsedMeans } from './feature-parts.ts'
import { FEATURE_EVENTS } from './feature-parts.ts'

/** An entry of the audit record: one transition of an approval. It is written together with the transition and never changes. */
export interface AuditEntry {
  readonly approvalId: string
  readonly chat: AppChatRef
  /** The version of the approval after the transition. 0 for the request. */
  readonly version: number
  /** When the transition happened, by the clock of the store. */
  readonly at: number
  readonly event: AuditEvent
}

/** A stored entry of the audit record, as `bridge.audit()` returns it: one transition of an approval. */
export interface AuditRecord extends AuditEntry {
  /** The position in the record. It grows with each entry of the store. */
  readonly seq: number
}

/** The channel in which a person decided, such as a chat service, and their account there. */
interface UsedChannel {
  readonly channel: string
  readonly account: string
}

/** The decision of one person. */
export interface DecisionEvent extends DecisionEvidence, FeatureDecision {
  readonly by: string
  /** The link or the channel with which the person was identified. Absent for a person with credentials. */
  readonly via?: UsedMeans | UsedChannel
  readonly step: number
  readonly reason?: string
}

/** What happened to an approval. */
export type AuditEvent =
  | FeatureEvent
  /** The call as people saw it, and its terms. */
  | {
      readonly type: 'requested'
      readonly messageId: string
      readonly toolCallId: string
      readonly toolName: string
      readonly args: Readonly<Record<string, unknown>>
      readonly digest: string
      readonly terms: ApprovalTerms
      readonly deadline: number
      /** The version of the policy that set the terms, if the application names it. */
      readonly policyVersion?: string
    }
  /** A decision in the chat was refused, and the approval stays open. Only the first one is recorded. */
  | { readonly type: 'decision-refused'; readonly by: string; readonly code: string }
  /** An approval that needs further approvals. */
  | (DecisionEvent & {
      readonly type: 'voted'
      /** The preview that the person saw. */
      readonly preview?: ShownPreview
    })
  /** A withdrawn vote. Votes of later steps depend on it and are dropped. */
  | {
      readonly type: 'withdrawn'
      readonly by: string
      readonly step: number
      /** The principals whose votes of later steps were dropped. */
      readonly dropped: readonly string[]
    }
  | (DecisionEvent & {
      readonly type: 'approved'
      readonly editedArgs?: Readonly<Record<string, unknown>>
      readonly payload?: unknown
      /** The preview that the person saw. */
      readonly preview?: ShownPreview
    })
  | (DecisionEvent & { readonly type: 'denied' })
  | { readonly type: 'expired' }
  | { readonly type: 'cancelled'; readonly reason: string }
  /** The call that runs, with the original or the edited arguments. */
  | {
      readonly type: 'started'
      readonly worker: string
      readonly args: Readonly<Record<string, unknown>>
      /** The approver's response to the payload of the tool. */
      readonly payload?: unknown
    }
  | { readonly type: 'succeeded'; readonly output: unknown; readonly receipt?: Preview }
  /** The tool threw, or returned the `output`, which reports a failure. */
  | {
      readonly type: 'failed'
      readonly error: string
      readonly output?: unknown
      readonly receipt?: Preview
    }
  /** The lease of the worker expired while the tool was running. `isUnstarted`: the worker learned too late that it had the call, and did not start it. */
  | {
      readonly type: 'lost'
      readonly worker: string
      readonly becomes: 'unknown' | 'approved'
      readonly isUnstarted?: boolean
    }

/** The events that change neither the state of an approval nor its votes. */
const ASIDE = [...FEATURE_EVENTS, 'decision-refused'] as const
type AsideEvent = Extract<AuditEvent, { readonly type: (typeof ASIDE)[number] }>

/** Whether an event changes neither the state of an approval nor its votes. */
export function isAside(event: AuditEvent): event is AsideEvent {
  return ASIDE.some((type) => type === event.type)
}
