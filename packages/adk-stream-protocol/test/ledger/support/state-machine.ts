import type { ApprovalStateName } from '../../../src/approvals/approval.ts'
import type { AuditEvent } from '../../../src/approvals/audit-entry.ts'
import { isAside } from '../../../src/approvals/audit-entry.ts'

/** The states that may follow each state, written down independently of the code under test. */
export const NEXT: Record<ApprovalStateName, readonly ApprovalStateName[]> = {
  requested: ['requested', 'approved', 'denied', 'expired', 'cancelled'],
  approved: ['executing', 'cancelled'],
  executing: ['succeeded', 'failed', 'unknown'],
  denied: [],
  expired: [],
  cancelled: [],
  succeeded: [],
  failed: [],
  unknown: [],
}

/** Returns the state of an approval after an event. */
export function stateAfter(event: AuditEvent): ApprovalStateName {
  if (event.type === 'voted' || event.type === 'withdrawn') return 'requested'
  // In these tests, only pending approvals have such events.
  if (isAside(event)) return 'requested'
  if (event.type === 'started') return 'executing'
  return event.type === 'lost' ? event.becomes : event.type
}
