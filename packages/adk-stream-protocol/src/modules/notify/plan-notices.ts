import { z } from 'zod'

import type { Approval } from '../../approvals/approval.ts'
import type { AuditEvent, AuditRecord } from '../../approvals/audit-entry.ts'
import { isAside } from '../../approvals/audit-entry.ts'
import type { Ledger } from '../../approvals/ledger.ts'
import type { Substitutes } from '../../approvals/substitutes.ts'
import { collect } from '../../shared/async.ts'
import { withoutUndefined } from '../../shared/collections.ts'
import type { NewNotice, NoticeStore } from '../../store/tables/notices.ts'
import type { PersonalRecordStore } from '../../store/tables/personal-records.ts'
import type { Pace } from './fast-approvals.ts'
import { forgetPace, notePace } from './fast-approvals.ts'
import type { ApprovalSummary, NoticeType, NotifyOptions, PlannedNotice } from './notice.ts'
import { addSubstitutes, toSummary } from './notice.ts'

/** How many audit entries are planned in one transaction. */
const MAX_ENTRIES = 200
/** How many notices a plan may return, and how late they may be. */
const MAX_PLANNED = 100
const MAX_TIME_MS = 366 * 24 * 3_600_000
/** The events after which nobody needs to decide. */
const ENDS: ReadonlySet<AuditEvent['type']> = new Set([
  'approved',
  'denied',
  'expired',
  'cancelled',
])

export interface PlanOptions extends NotifyOptions {
  readonly store: NoticeStore
  readonly ledger: Pick<Ledger, 'appName' | 'audit' | 'get' | 'lastSeq' | 'now'>
  readonly onError: (error: unknown) => void
  /** Who decides in whose place. */
  readonly substitutes?: Substitutes | undefined
  /** Where the decisions of people are counted. Needed with `fastApprovals`. */
  readonly records?: PersonalRecordStore | undefined
  /** Called for a person who approves every call, many of them fast. */
  readonly onFast?: (by: string, pace: Pace) => void
}

/** What is stored as the body of a notice. */
export interface NoticeBody {
  readonly type: NoticeType
  readonly at: number
  /** The step of the chain that it asks to decide. */
  readonly step?: number
  /** Set if it is sent some time after the step has begun, and only if the step is still open. */
  readonly later?: true
  readonly to?: string
  readonly by?: string
  readonly reason?: string
  readonly pace?: Pace
}

/**
 * Plans the notices for new entries of the audit record. The record is the queue: a decision writes nothing for its notices, and an
 * entry is planned once, because the position moves together with what is planned. Returns false if there is nothing left.
 */
export async function planNotices(options: PlanOptions): Promise<boolean> {
  const { store, ledger } = options
  const { appName } = ledger
  const [from, last] = [await store.position(appName), await ledger.lastSeq()]
  if (last <= from) return false
  const entries = await collect(ledger.audit({ after: from, limit: MAX_ENTRIES }))
  const isLast = entries.length < MAX_ENTRIES
  const to = Math.max(entries.at(-1)?.seq ?? from, isLast ? last : from)
  const fastApprovers = await findFast(options, entries)
  const notices = await planEntries(options, entries, fastApprovers)
  const ended = entries.filter(({ event }) => ENDS.has(event.type))
  const isPlanned = await store.plan(appName, {
    from,
    to,
    notices,
    ended: ended.map(({ approvalId }) => approvalId),
  })
  if (isPlanned) await reportFast(options, fastApprovers)
  return !isLast
}

/** A person who approves every call, many of them fast, with the entry of the newest approval. */
interface FastApprover {
  readonly entry: AuditRecord
  readonly by: string
  readonly pace: Pace
}

/** Counts the decisions of entries. Returns who approves every call, each person once. */
async function findFast(
  { records, fastApprovals, ledger }: PlanOptions,
  entries: readonly AuditRecord[],
): Promise<FastApprover[]> {
  if (!records || !fastApprovals) return []
  const found = new Map<string, FastApprover>()
  for (const entry of entries) {
    const by = 'by' in entry.event ? entry.event.by : undefined
    const approval = by === undefined ? undefined : await ledger.get(entry.approvalId)
    if (by === undefined || !approval) continue
    const pace = await notePace(records, entry, { approval, options: fastApprovals })
    if (pace) found.set(by, { entry, by, pace })
  }
  return [...found.values()]
}

async function reportFast(
  { records, ledger, onFast }: PlanOptions,
  fastApprovers: readonly FastApprover[],
): Promise<void> {
  for (const { by, pace } of fastApprovers) {
    onFast?.(by, pace)
    if (records) await forgetPace(records, { appName: ledger.appName, principalId: by })
  }
}

/** Returns the notice about a person who approves every call. */
function planFast(
  { fastApprovals: { tell, to } = {} }: PlanOptions,
  { entry, by, pace }: FastApprover,
): NoticeDraft[] {
  if (tell === undefined) return []
  const body = {
    type: 'approver.fast',
    at: entry.at,
    by,
    pace,
    ...withoutUndefined({ to }),
  } as const
  return [{ tell, body }]
}

/** Returns the notices for entries of the audit record. */
async function planEntries(
  options: PlanOptions,
  entries: readonly AuditRecord[],
  fastApprovers: readonly FastApprover[],
): Promise<NewNotice[]> {
  const { store, ledger } = options
  const ids = [...new Set(entries.map(({ approvalId }) => approvalId))]
  if (ids.length === 0) return []
  const channels = await findEnabled(options)
  /** The channels that know of an approval. */
  const told = new Map<string, Set<string>>(ids.map((id) => [id, new Set()]))
  for (const { approvalId, channel } of await store.listNotified(ledger.appName, ids))
    told.get(approvalId)?.add(channel)
  const notices: NewNotice[] = []
  for (const entry of entries) {
    const { approvalId, seq, chat } = entry
    const knows = told.get(approvalId) ?? new Set()
    const requests = await planRequests(options, entry)
    const fast = fastApprovers
      .filter((one) => one.entry === entry)
      .flatMap((one) => planFast(options, one))
    const planned = [...planChange(entry, knows), ...requests, ...fast].filter(({ tell }) =>
      channels.has(tell),
    )
    for (const [number, { tell, after = 0, body }] of planned.entries()) {
      notices.push({
        id: `${seq}-${number}`,
        channel: tell,
        approvalId,
        principalId: chat.principalId,
        position: seq * 1_000 + number,
        asks: body.step !== undefined,
        afterMs: after,
        body: JSON.stringify(body),
      })
      if (after === 0 && body.step !== undefined) knows.add(tell)
    }
  }
  return notices
}

interface NoticeDraft extends Omit<PlannedNotice, 'to'> {
  readonly body: NoticeBody
}

/** Returns the names of the channels whose receiver wants notices. */
async function findEnabled({ store, ledger, channels }: PlanOptions): Promise<Set<string>> {
  const disabled = await store.listDisabled(ledger.appName)
  const isDisabled = (name: string): boolean =>
    disabled.some(
      ({ channel, address }) => channel === name && address === (channels[name]?.address ?? ''),
    )
  return new Set(Object.keys(channels).filter((name) => !isDisabled(name)))
}

/** Returns what those who know of an approval are told about a change. */
function planChange({ event, at }: AuditRecord, knows: ReadonlySet<string>): NoticeDraft[] {
  const type = toType(event)
  if (type === undefined) return []
  const by = 'by' in event ? event.by : undefined
  const reason = 'reason' in event ? event.reason : undefined
  return [...knows].map((tell) => ({
    tell,
    body: { type, at, ...withoutUndefined({ by, reason }) },
  }))
}

function toType(event: AuditEvent): NoticeType | undefined {
  if (event.type === 'requested' || event.type === 'started' || isAside(event)) return undefined
  if (event.type !== 'lost') return `approval.${event.type}`
  return event.becomes === 'unknown' ? 'approval.unknown' : undefined
}

/** Returns whom to ask for a decision, if a step of an approval begins with this entry. */
async function planRequests(
  options: PlanOptions,
  { approvalId, event, at }: AuditRecord,
): Promise<NoticeDraft[]> {
  if (event.type !== 'requested' && event.type !== 'voted') return []
  const approval = await options.ledger.get(approvalId)
  const step = approval && findBegun(approval, event)
  if (!approval || step === undefined) return []
  const asked = new Set<string>()
  const summary = await addSubstitutes(toSummary(approval, step), approval, options.substitutes)
  return readPlan(options, summary).map(({ tell, after, to }) => {
    const type = asked.has(tell) ? 'approval.reminder' : 'approval.requested'
    asked.add(tell)
    const isLater = after !== undefined && after > 0
    const body: NoticeBody = {
      type,
      at,
      step,
      ...(isLater && { later: true }),
      ...withoutUndefined({ to }),
    }
    return { tell, body, ...withoutUndefined({ after }) }
  })
}

/** Returns the index of the step that begins with an event. */
function findBegun(
  { terms, votes }: Approval,
  event: Extract<AuditEvent, { readonly type: 'requested' | 'voted' }>,
): number | undefined {
  if (event.type === 'requested') return 0
  const voters = votes.filter(({ step }) => step === event.step)
  const count = terms.chain[event.step]?.count
  const isComplete = voters.findIndex(({ principalId }) => principalId === event.by) + 1 === count
  return isComplete && event.step + 1 < terms.chain.length ? event.step + 1 : undefined
}

/** Calls the plan. If it fails, every channel is told at once, so that nobody misses the approval. */
function readPlan(
  { plan, channels, onError }: PlanOptions,
  approval: ApprovalSummary,
): readonly PlannedNotice[] {
  const everyone = Object.keys(channels).map((tell) => ({ tell }))
  if (!plan) return everyone
  try {
    return checkPlan(plan(approval), channels)
  } catch (cause) {
    const what = `notify.plan failed for the tool ${approval.toolName}. Every channel is told.`
    onError(new Error(what, { cause }))
    return everyone
  }
}

function checkPlan(
  planned: unknown,
  channels: NotifyOptions['channels'],
): readonly PlannedNotice[] {
  const entries = Plan.parse(planned)
  const unknown = entries.find(({ tell }) => !Object.hasOwn(channels, tell))
  if (unknown) throw new TypeError(`There is no channel named ${unknown.tell}.`)
  return entries.map(({ tell, after, to }) => ({ tell, ...withoutUndefined({ after, to }) }))
}

const Plan = z
  .array(
    z.strictObject({
      tell: z.string(),
      after: z.number().min(0).max(MAX_TIME_MS).optional(),
      to: z.string().max(500).optional(),
    } satisfies Record<keyof PlannedNotice, z.ZodType>),
  )
  .max(MAX_PLANNED)
