import type { Event } from '@google/adk'

import type { Approval } from '../../approvals/approval.ts'
import type { AuditRecord } from '../../approvals/audit-entry.ts'
import type { Decider } from '../../approvals/deciders.ts'
import type { Timeline, TimelineEntry, TimelineWait } from '../../protocol/timeline.ts'
import type { StoredTurn } from '../history/replay-turn.ts'
import { splitTurns } from '../history/replay-turn.ts'
import type { Translation } from '../translate/translation.ts'
import { describeWaits, shortenArgs } from './timeline-text.ts'
import type { ApprovalEntry } from './timeline-approvals.ts'
import { readApprovalWait, readApprovals } from './timeline-approvals.ts'
import type { TurnFacts } from './timeline-turn.ts'
import { readTurnTimeline } from './timeline-turn.ts'

/** What is stored about a chat, and what runs in it. */
export interface TimelineSource extends Pick<
  TurnFacts,
  'browserCalls' | 'isBrowserTool' | 'showText'
> {
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
    if (event.type !== 'lost' || !approval) return []
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
  const { running, browserCalls, isBrowserTool } = source
  const known = new Set(waits.flatMap((wait) => ('toolCallId' in wait ? wait.toolCallId : [])))
  const found: TimelineWait[] = []
  for (const entry of entries) {
    const { at: since } = entry
    if (entry.endedAt !== undefined) continue
    if (entry.type === 'model') found.push({ for: 'model', messageId, since })
    if ((entry.type !== 'tool' && entry.type !== 'browser-tool') || known.has(entry.toolCallId))
      continue
    const { toolCallId, toolName, args } = entry
    const call = { toolCallId, toolName, args: shortenArgs(args), messageId, since }
    const isOutside = state.calls.get(toolCallId)?.state === 'waiting'
    const isBrowser = browserCalls.has(toolCallId) || isBrowserTool(toolName)
    if (isOutside) found.push({ for: isBrowser ? 'browser' : 'application', ...call })
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
