import {
  Check,
  CircleDashed,
  Clock,
  LocateFixed,
  Play,
  ShieldQuestion,
  Undo2,
  X,
} from 'lucide-react'
import type { AdkApi, ApprovalRecord } from 'adk-stream-protocol/client'
import { useEffect, useState } from 'react'

import { useDescribeCall } from '../plugin/use-describe-call.ts'
import { formatMs, formatTime, nameOf } from './format.ts'
import type { ApprovalStage } from './labels.ts'
import { ScrolledText, useInspectorLabels } from './parts.tsx'
import { showInChat } from './inspection.ts'
import type { TimelineEntry } from './timeline-rows.ts'

interface ApprovalsProps {
  readonly api: AdkApi
  /** The approvals of the chat, newest first. */
  readonly approvals: readonly ApprovalEntry[]
  /** The principal who reads. */
  readonly reader: string | undefined
}

/** Shows the stages and votes of every approval, from the timeline of the server. */
export function ApprovalPictures({ api, approvals, reader }: ApprovalsProps) {
  const labels = useInspectorLabels()
  if (approvals.length === 0) return <p className="inspector-empty">{labels.noApprovals}</p>
  return (
    <ul className="lives">
      {approvals.map((approval) => (
        <li key={approval.approvalId}>
          <ApprovalPicture {...{ api, approval, reader }} />
        </li>
      ))}
    </ul>
  )
}

interface ApprovalPictureProps extends Omit<ApprovalsProps, 'approvals'> {
  readonly approval: ApprovalEntry
}

function ApprovalPicture({ api, approval, reader }: ApprovalPictureProps) {
  const labels = useInspectorLabels()
  const describeCall = useDescribeCall()
  const [isOpen, setOpen] = useState(false)
  const { toolName, args, title, given, needed, decision, deadline, state } = approval
  return (
    <article className="life">
      <h3>{describeCall(toolName, args, state) ?? title ?? toolName}</h3>
      <ol className="life-stops">
        {readPath(approval).map((stop) => (
          <StopView key={`${stop.type ?? stop.stage} ${stop.at ?? ''}`} {...{ stop, reader }} />
        ))}
      </ol>
      {needed > 1 && (
        <p>
          {labels.votes(given, needed)}
          {!decision &&
            deadline !== undefined &&
            ` · ${labels.facts.expires} ${formatTime(deadline, labels, { timeStyle: 'short' })}`}
        </p>
      )}
      {decision?.reason !== undefined && (
        <p>
          {labels.facts.reason}: {decision.reason}
        </p>
      )}
      <button type="button" className="show-in-chat" onClick={() => showInChat(approval)}>
        <LocateFixed size={14} aria-hidden="true" />
        {labels.showInChat}
      </button>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>{labels.record}</summary>
        {isOpen && (
          <AuditRecord key={`${state} ${given}`} api={api} approvalId={approval.approvalId} />
        )}
      </details>
    </article>
  )
}

/** The audit record of an approval. Mounted again when the approval changes. */
function AuditRecord({ api, approvalId }: { readonly api: AdkApi; readonly approvalId: string }) {
  const labels = useInspectorLabels()
  const [history, setHistory] = useState<readonly ApprovalRecord[] | 'failed'>()
  useEffect(() => {
    let isCancelled = false
    api.readApproval(approvalId).then(
      (read) => !isCancelled && setHistory(read.history),
      () => !isCancelled && setHistory('failed'),
    )
    return () => {
      isCancelled = true
    }
  }, [api, approvalId])
  if (!history) return <p role="status">{labels.reading}</p>
  if (history === 'failed') return <p className="turn-error">{labels.unreadable}</p>
  return (
    <ScrolledText>
      {history.map((line) => JSON.stringify(line, undefined, 2)).join('\n')}
    </ScrolledText>
  )
}

interface StopViewProps {
  readonly stop: Stop
  readonly reader: string | undefined
}

function StopView({ stop, reader }: StopViewProps) {
  const labels = useInspectorLabels()
  const { stage, type, at, tookMs, by } = stop
  const Icon = type === undefined ? CircleDashed : (ICONS[type] ?? Check)
  return (
    <li className="stop" data-stage={stage} data-type={type ?? 'upcoming'}>
      <Icon aria-hidden="true" size={18} />
      <span className="stop-name">
        {type === undefined ? labels.upcoming[stage] : (labels.stops[type] ?? type)}
      </span>
      {by !== undefined && <span className="stop-by">{nameOf(by, labels, reader)}</span>}
      {at !== undefined && (
        <time dateTime={new Date(at).toISOString()}>{formatTime(at, labels)}</time>
      )}
      {tookMs !== undefined && <span className="stop-took">+{formatMs(tookMs)}</span>}
    </li>
  )
}

const ICONS: Readonly<Record<string, typeof Check>> = {
  requested: ShieldQuestion,
  withdrawn: Undo2,
  denied: X,
  expired: Clock,
  cancelled: X,
  started: Play,
  failed: X,
  lost: ShieldQuestion,
}

export type ApprovalEntry = Extract<TimelineEntry, { type: 'approval' }>

/** A stage of one approval: what happened, when, by whom, and how long it took since the previous one. */
interface Stop {
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
