import type { TimelineEntry } from 'adk-stream-protocol/client'

export type ApprovalEntry = Extract<TimelineEntry, { type: 'approval' }>

/** The stages of an approval, in order. */
export type ApprovalStage = 'requested' | 'decided' | 'started' | 'ended'

/** A stage of one approval: what happened, when, by whom, and how long it took since the previous one. */
export interface Stop {
  readonly stage: ApprovalStage
  /** The type in the audit record, such as `denied`. Undefined if the approval has not reached the stage. */
  readonly type?: string
  readonly at?: number
  readonly tookMs?: number
  readonly by?: string | undefined
}

/** Returns the stages of an approval, with each vote, including those that are still to come. */
export function readPath(approval: ApprovalEntry): Stop[] {
  const { at, votes, decision, startedAt, finishedAt, state } = approval
  const reached: Stop[] = [{ stage: 'requested', type: 'requested', at }]
  for (const vote of votes) {
    // The last vote is the decision.
    if (decision?.state === 'approved' && vote.by === decision.by && vote.at === decision.at)
      continue
    reached.push({ stage: 'decided', type: 'voted', at: vote.at, by: vote.by })
    if (vote.withdrawnAt !== undefined)
      reached.push({ stage: 'decided', type: 'withdrawn', at: vote.withdrawnAt, by: vote.by })
  }
  if (decision)
    reached.push({ stage: 'decided', type: decision.state, at: decision.at, by: decision.by })
  if (startedAt !== undefined) reached.push({ stage: 'started', type: 'started', at: startedAt })
  if (finishedAt !== undefined)
    reached.push({ stage: 'ended', type: state === 'unknown' ? 'lost' : state, at: finishedAt })
  const path = reached
    .toSorted((one, other) => Number(one.at) - Number(other.at))
    .map((stop, index, all) => {
      const before = all[index - 1]?.at
      return before === undefined || stop.at === undefined
        ? stop
        : { ...stop, tookMs: stop.at - before }
    })
  // Without an approval, no stage follows.
  if (decision && decision.state !== 'approved') return path
  if (!decision) path.push({ stage: 'decided' })
  if (startedAt === undefined) path.push({ stage: 'started' })
  if (finishedAt === undefined) path.push({ stage: 'ended' })
  return path
}
