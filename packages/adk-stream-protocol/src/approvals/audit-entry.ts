import type { ApprovalChat, ApprovalTerms } from './approval.ts'

/** One line of the audit record: what a transition of an approval did. It is written with the transition and never changed. */
export interface AuditEntry {
  readonly approvalId: string
  readonly chat: ApprovalChat
  /** The version that the transition made; 0 for the request. */
  readonly version: number
  /** When, by the store's clock. */
  readonly at: number
  readonly event: AuditEvent
}

/** An entry in its place in the record. */
export interface AuditRecord extends AuditEntry {
  /** Grows with every entry of the store. */
  readonly seq: number
}

export type AuditEvent =
  /** What was shown, and on which terms. */
  | {
      readonly type: 'requested'
      readonly messageId: string
      readonly toolCallId: string
      readonly toolName: string
      readonly args: Readonly<Record<string, unknown>>
      readonly digest: string
      readonly terms: ApprovalTerms
      readonly deadline: number
    }
  /** An approval that is not yet enough. */
  | {
      readonly type: 'voted'
      readonly by: string
      readonly step: number
      readonly reason?: string
    }
  /** A vote that was taken back, with the votes of later steps, which were given on the strength of it. */
  | {
      readonly type: 'withdrawn'
      readonly by: string
      readonly step: number
      /** Whose votes of later steps were dropped. */
      readonly dropped: readonly string[]
    }
  | {
      readonly type: 'approved'
      readonly by: string
      readonly step: number
      readonly reason?: string
      readonly editedArgs?: Readonly<Record<string, unknown>>
      readonly payload?: unknown
    }
  | {
      readonly type: 'denied'
      readonly by: string
      readonly step: number
      readonly reason?: string
    }
  | { readonly type: 'expired' }
  | { readonly type: 'cancelled'; readonly reason: string }
  /** What really runs: the arguments as shown, or as the approver changed them. */
  | {
      readonly type: 'started'
      readonly worker: string
      readonly args: Readonly<Record<string, unknown>>
      /** What the approver answered to the tool's payload. */
      readonly payload?: unknown
    }
  | { readonly type: 'succeeded'; readonly output: unknown }
  | { readonly type: 'failed'; readonly error: string }
  /** The worker's lease ran out while the tool ran. */
  | {
      readonly type: 'lost'
      readonly worker: string
      readonly becomes: 'unknown' | 'approved'
    }
