import type { Approval } from '../../approvals/approval.ts'
import type { AuditRecord } from '../../approvals/audit-entry.ts'
import type { Decider } from '../../approvals/deciders.ts'
import { currentStep, isEligible } from '../../approvals/deciders.ts'
import type {
  TimelineDecision,
  TimelineEntry,
  TimelineVote,
  TimelineWait,
} from '../../protocol/timeline.ts'
import { shortenArgs } from './timeline-text.ts'

export type ApprovalEntry = Extract<TimelineEntry, { type: 'approval' }>

/** Returns the wait for each approval, from its audit entries in the order of writing. */
export function readApprovals(records: Iterable<AuditRecord>): ApprovalEntry[] {
  const entries = new Map<string, ApprovalEntry>()
  for (const record of records) {
    const known = entries.get(record.approvalId)
    const next = known ? addRecord(known, record) : readRequest(record)
    if (next) entries.set(record.approvalId, next)
  }
  return [...entries.values()]
}

function readRequest({ approvalId, at, event }: AuditRecord): ApprovalEntry | undefined {
  // Retention has removed the request.
  if (event.type !== 'requested') return undefined
  const { messageId, toolCallId, toolName, args, terms, deadline } = event
  return {
    type: 'approval',
    id: `approval:${approvalId}`,
    messageId,
    at,
    approvalId,
    toolCallId,
    toolName,
    args: shortenArgs(args),
    ...(terms.title !== undefined && { title: terms.title }),
    state: 'requested',
    deadline,
    given: 0,
    needed: terms.chain.reduce((sum, step) => sum + step.count, 0),
    votes: [],
  }
}

function addRecord(entry: ApprovalEntry, { at, event }: AuditRecord): ApprovalEntry {
  switch (event.type) {
    case 'requested':
    case 'link-created':
    case 'link-opened':
      return entry
    case 'voted':
      return addVote(entry, { by: event.by, at })
    case 'withdrawn': {
      const names = [event.by, ...event.dropped]
      const votes = entry.votes.map((vote) =>
        names.includes(vote.by) && vote.withdrawnAt === undefined
          ? { ...vote, withdrawnAt: at }
          : vote,
      )
      return { ...entry, votes, given: countGiven(votes) }
    }
    case 'approved': {
      const voted = addVote(entry, { by: event.by, at })
      return decide(voted, { state: 'approved', at, ...readBy(event) })
    }
    case 'denied':
      return decide(entry, { state: 'denied', at, ...readBy(event) })
    case 'expired':
      return decide(entry, { state: 'expired', at })
    case 'cancelled':
      return decide(entry, { state: 'cancelled', at, reason: event.reason })
    case 'started': {
      const { finishedAt: _finishedAt, ...open } = entry
      return { ...open, state: 'executing', startedAt: at }
    }
    case 'succeeded':
    case 'failed':
      return { ...entry, state: event.type, finishedAt: at }
    case 'lost':
      // An idempotent call starts again. Until then it is approved.
      return event.becomes === 'approved'
        ? { ...entry, state: 'approved' }
        : { ...entry, state: 'unknown', finishedAt: at }
  }
}

function addVote(entry: ApprovalEntry, vote: TimelineVote): ApprovalEntry {
  const votes = [...entry.votes, vote]
  return { ...entry, votes, given: countGiven(votes) }
}

function countGiven(votes: readonly TimelineVote[]): number {
  return votes.filter(({ withdrawnAt }) => withdrawnAt === undefined).length
}

function decide(entry: ApprovalEntry, decision: TimelineDecision): ApprovalEntry {
  return { ...entry, state: decision.state, decision, endedAt: decision.at }
}

function readBy({ by, reason }: { readonly by: string; readonly reason?: string }) {
  return { by, ...(reason !== undefined && { reason }) }
}

/** Returns what a chat waits for because of an approval: people, or a call. Undefined if the approval has ended. */
export function readApprovalWait(
  approval: Approval,
  reader: Decider | undefined,
): TimelineWait | undefined {
  const { id: approvalId, toolCallId, toolName, messageId, args, terms, state, votes } = approval
  const call = { toolCallId, toolName, args: shortenArgs(args), messageId }
  if (state.name === 'approved') return { for: 'start', ...call, since: state.at }
  if (state.name === 'executing') return { for: 'tool', ...call, since: state.at }
  if (state.name !== 'requested') return undefined
  const step = terms.chain[currentStep(approval) ?? 0]
  const { principals = [], roles = [] } = step ?? {}
  const approvedBy = votes.map(({ principalId }) => principalId)
  const byReader =
    reader !== undefined &&
    step !== undefined &&
    !approvedBy.includes(reader.id) &&
    isEligible(step, reader)
  return {
    for: 'approval',
    ...call,
    approvalId,
    ...(terms.title !== undefined && { title: terms.title }),
    since: approval.requestedAt,
    deadline: approval.deadline,
    given: votes.length,
    needed: terms.chain.reduce((sum, { count }) => sum + count, 0),
    approvers: { principals, roles },
    approvedBy,
    byReader,
    votedByReader: reader !== undefined && approvedBy.includes(reader.id),
  }
}
