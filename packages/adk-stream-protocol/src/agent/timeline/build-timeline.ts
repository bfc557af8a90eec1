import type { Event } from '@google/adk'

import type { Approval } from '../../approvals/approval.ts'
import type { AuditRecord } from '../../approvals/audit-entry.ts'
import { isAside } from '../../approvals/audit-entry.ts'
import type { Decider } from '../../approvals/deciders.ts'
import { currentStep, isEligible } from '../../approvals/deciders.ts'
import type {
  ApprovalEntry,
  Timeline,
  TimelineEntry,
  TimelineWait,
  TimelineDecision,
  TimelineVote,
} from '../../protocol/timeline.ts'
import { isToolEntry } from '../../protocol/timeline.ts'
import type { StoredTurn } from '../history/stored-turns.ts'
import { splitTurns } from '../history/stored-turns.ts'
import type { Translation } from '../translate/translation.ts'
import { describeWaits, shortenArgs } from './timeline-text.ts'
import type { TurnFacts } from './timeline-turn.ts'
import { readTurnTimeline } from './timeline-turn.ts'

/** What is stored about a chat, and what runs in it. */
interface TimelineSource extends Pick<TurnFacts, 'isClientCall' | 'showText'> {
  readonly chatId: string
  /** The time of the store. */
  readonly now: number
  /** The events of the ADK session. */
  readonly events: readonly Event[]
  /** The audit record of the chat, in the order of writing. */
  readonly audit: readonly AuditRecord[]
  /** The approvals of the chat that have not ended. */
  readonly open: readonly Approval[]
  /** The message that is being written, on any server. */
  readonly running: string | undefined
  /** The person who reads. Undefined for the application. */
  readonly reader: Decider | undefined
}

/** Selects the turns of a page. */
export interface TimelinePage {
  /** Maximum number of turns. */
  readonly limit: number
  /** The message id of the turn before which the page ends. Default: the newest turns. */
  readonly before?: string
}

/** Maximum number of entries of a page. The newest turn of a page is always in it. */
const MAX_ENTRIES = 2_000

/** Returns a page of the timeline of a chat. Returns undefined if the turn of `before` does not exist. A pure function. */
export function buildTimeline(
  source: TimelineSource,
  { limit, before }: TimelinePage,
): Omit<Timeline, 'state'> | undefined {
  const turns = splitTurns(source.events)
  const end =
    before === undefined ? turns.length : turns.findIndex((turn) => turn.messageId === before)
  if (end < 0) return undefined
  const approvals = readApprovals(source.audit)
  const recoveries = readRecoveries(source.audit, approvals)
  const pages: TimelineEntry[][] = []
  const waits: TimelineWait[] = source.open.flatMap(
    (approval) => readApprovalWait(approval, source.reader) ?? [],
  )
  let start = end
  let count = 0
  while (start > 0 && end - start < limit) {
    const turn = turns[start - 1]
    if (!turn) break
    const { messageId } = turn
    const { entries, state } = readTurnTimeline(turn, {
      ...source,
      running: source.running === messageId,
      approvals: approvals.filter((approval) => approval.messageId === messageId),
    })
    if (count > 0 && count + entries.length > MAX_ENTRIES) break
    count += entries.length
    const recovered = recoveries.filter((entry) => entry.messageId === messageId)
    pages.unshift([...entries, ...recovered].slice(-MAX_ENTRIES))
    waits.push(...readTurnWaits(turn, { state, entries, source, waits }))
    start -= 1
  }
  const next = start > 0 ? turns[start]?.messageId : undefined
  const sorted = sortWaits(waits)
  return {
    chatId: source.chatId,
    now: source.now,
    running: source.running !== undefined,
    entries: pages.flat().toSorted((one, other) => one.at - other.at),
    waits: sorted,
    why: describeWaits(sorted),
    ...(next !== undefined && { next }),
    ...(source.reader && { reader: source.reader.id }),
  }
}

/** Returns when another server recovered a call of a server that has crashed. */
function readRecoveries(
  audit: readonly AuditRecord[],
  approvals: readonly ApprovalEntry[],
): TimelineEntry[] {
  const known = new Map(approvals.map((approval) => [approval.approvalId, approval]))
  return audit.flatMap(({ approvalId, at, version, event }): TimelineEntry[] => {
    const approval = known.get(approvalId)
    if (event.type !== 'lost' || event.isUnstarted || !approval) return []
    const { messageId, toolCallId } = approval
    const id = `hand-over:${approvalId}:${version}`
    return [{ type: 'hand-over', id, messageId, at, to: 'server', toolCallId }]
  })
}

interface TurnEnd {
  readonly state: Translation
  readonly entries: readonly TimelineEntry[]
  readonly source: TimelineSource
  readonly waits: readonly TimelineWait[]
}

/** Returns what a turn waits for, apart from its approvals. */
function readTurnWaits(
  { messageId }: StoredTurn,
  { state, entries, source, waits }: TurnEnd,
): TimelineWait[] {
  const { running, isClientCall } = source
  const known = new Set(waits.flatMap((wait) => ('toolCallId' in wait ? wait.toolCallId : [])))
  const found: TimelineWait[] = []
  for (const entry of entries) {
    const { at: since } = entry
    if (entry.endedAt !== undefined) continue
    if (entry.type === 'model') found.push({ for: 'model', messageId, since })
    if (!isToolEntry(entry) || known.has(entry.toolCallId)) continue
    const { toolCallId, toolName, args } = entry
    const call = { toolCallId, toolName, args: shortenArgs(args), messageId, since }
    const isOutside = state.calls.get(toolCallId)?.state === 'waiting'
    if (isOutside) found.push({ for: isClientCall(entry) ? 'browser' : 'application', ...call })
    else if (running === messageId) found.push({ for: 'tool', ...call })
  }
  return found
}

/** What a person can do comes first. */
const ORDER: readonly TimelineWait['for'][] = [
  'approval',
  'browser',
  'start',
  'tool',
  'model',
  'application',
]

function sortWaits(waits: readonly TimelineWait[]): TimelineWait[] {
  return waits.toSorted(
    (one, other) =>
      ORDER.indexOf(one.for) - ORDER.indexOf(other.for) ||
      // Among approvals, what this person can decide.
      Number(isForReader(other)) - Number(isForReader(one)) ||
      one.since - other.since,
  )
}

function isForReader(wait: TimelineWait): boolean {
  return wait.for === 'approval' && wait.byReader
}

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
  if (isAside(event)) return entry
  switch (event.type) {
    case 'requested':
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
