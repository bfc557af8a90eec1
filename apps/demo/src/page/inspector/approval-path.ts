import type { ApprovalRecord } from 'adk-stream-protocol/client'

/** The stages of an approval, in order. */
const STAGES = ['requested', 'decided', 'started', 'ended'] as const
export type ApprovalStage = (typeof STAGES)[number]

/** A stage of one approval: what happened, when, and how long it took since the previous stage. */
export interface Stop {
  readonly stage: ApprovalStage
  /** The type in the audit record, such as `denied`. Undefined if the approval has not reached the stage. */
  readonly type?: string
  readonly at?: number
  readonly tookMs?: number
  readonly by?: string
}

const STAGE_OF: Readonly<Record<string, ApprovalStage>> = {
  requested: 'requested',
  approved: 'decided',
  denied: 'decided',
  expired: 'decided',
  cancelled: 'decided',
  started: 'started',
  succeeded: 'ended',
  failed: 'ended',
  lost: 'ended',
}

/** Returns the stages of an approval from its audit record, including those that are still to come. */
export function readPath(history: readonly ApprovalRecord[]): Stop[] {
  const records = history.filter(({ type }) => type in STAGE_OF)
  const stops: Stop[] = []
  for (const stage of STAGES) {
    const record = records.findLast(({ type }) => STAGE_OF[type] === stage)
    const before = stops.at(-1)?.at
    if (!record) {
      stops.push({ stage })
      continue
    }
    const { type, at } = record
    const tookMs = before === undefined ? undefined : at - before
    const by = 'by' in record && typeof record['by'] === 'string' ? record['by'] : undefined
    stops.push({
      stage,
      type,
      at,
      ...(tookMs !== undefined && { tookMs }),
      ...(by !== undefined && { by }),
    })
  }
  // Without an approval, no stage follows.
  const decided = stops.find(({ stage }) => stage === 'decided')?.type
  return decided === undefined || decided === 'approved' ? stops : stops.slice(0, 2)
}

/** Returns the number of votes, if several people must approve. */
export function countVotes(history: readonly ApprovalRecord[]): number {
  return history.filter(({ type }) => type === 'voted').length
}
