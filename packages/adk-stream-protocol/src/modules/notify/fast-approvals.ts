import type { Approval } from '../../approvals/approval.ts'
import type { AuditRecord } from '../../approvals/audit-entry.ts'
import type { Owner } from '../../store/keys.ts'
import type { PersonalRecordStore } from '../../store/tables/personal-records.ts'
import type { FastApprovalsOptions } from './notice.ts'

/** How fast a person has approved, without a denial in between. */
export interface Pace {
  /** The last decisions of the person. All are approvals. */
  readonly decisions: number
  /** How many of them came within `withinMs` after the person could decide. */
  readonly fast: number
  readonly withinMs: number
}

const KIND = 'decision'
const DAY_MS = 24 * 3_600_000
const DECISIONS = 20
const WITHIN_MS = 2_000

/**
 * Adds the decision of an audit entry to the record of the person. Returns how fast the person approves, if their last decisions of a day
 * are all approvals and at least half of them were fast. The same entry counts once, also if another process reads it again.
 */
export async function notePace(
  records: PersonalRecordStore,
  { seq, chat, event, at }: AuditRecord,
  { approval, options }: { readonly approval: Approval; readonly options: FastApprovalsOptions },
): Promise<Pace | undefined> {
  if (event.type !== 'approved' && event.type !== 'voted' && event.type !== 'denied')
    return undefined
  // A grant decides at once, and nobody reads the call.
  if (event.grant) return undefined
  const { decisions: size = DECISIONS, withinMs = WITHIN_MS } = options
  const owner = { appName: chat.appName, principalId: event.by }
  const ms = at - startOf(approval, event.step)
  const body = JSON.stringify({ approved: event.type !== 'denied', ms })
  // Numbers of equal length have the order of their text.
  await records.put(owner, {
    kind: KIND,
    id: String(seq).padStart(16, '0'),
    body,
    forMs: DAY_MS,
  })
  const all = (await records.list(owner, KIND)).toSorted((one, other) =>
    one.id < other.id ? -1 : 1,
  )
  for (const { id } of all.slice(0, -size)) await records.remove(owner, { kind: KIND, id })
  // This file wrote them.
  const last = all.slice(-size).map((record) => JSON.parse(record.body) as Decided)
  const fast = last.filter((decided) => decided.ms < withinMs).length
  const isFast = last.length === size && last.every(({ approved }) => approved) && fast * 2 >= size
  return isFast ? { decisions: size, fast, withinMs } : undefined
}

/** Starts again with the next decision of a person, so that each decision is reported once. */
export async function forgetPace(records: PersonalRecordStore, owner: Owner): Promise<void> {
  for (const { id } of await records.list(owner, KIND))
    await records.remove(owner, { kind: KIND, id })
}

interface Decided {
  readonly approved: boolean
  readonly ms: number
}

/** Returns when people could decide a step: when the call was requested, or when the step before was complete. */
function startOf({ requestedAt, votes }: Approval, step: number): number {
  const before = votes.filter((vote) => vote.step < step).map(({ at }) => at)
  return Math.max(requestedAt, ...before)
}
