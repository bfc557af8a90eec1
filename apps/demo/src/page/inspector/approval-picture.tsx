import { Check, CircleDashed, Clock, Play, ShieldQuestion, X } from 'lucide-react'
import type { AdkApi, ApprovalRecord, PendingApproval } from 'adk-stream-protocol/client'
import { useEffect, useState } from 'react'

import { countVotes, readPath, type Stop } from './approval-path.ts'
import { formatMs } from './format-ms.ts'
import { ScrolledText } from './scrolled-text.tsx'
import { useInspectorLabels } from './labels.ts'

interface ApprovalsProps {
  readonly api: AdkApi
  /** The approvals of the conversation and their states. If a state changes, the audit record is loaded again. */
  readonly approvals: readonly ShownApproval[]
}

export interface ShownApproval {
  readonly id: string
  readonly state: string
}

/** Shows the stages of every approval, from the server's audit record. */
export function ApprovalPictures({ api, approvals }: ApprovalsProps) {
  const labels = useInspectorLabels()
  if (approvals.length === 0) return <p className="inspector-empty">{labels.noApprovals}</p>
  return (
    <ul className="lives">
      {approvals.map(({ id, state }) => (
        <li key={id}>
          <ApprovalPicture api={api} id={id} key={state} />
        </li>
      ))}
    </ul>
  )
}

interface ApprovalHistory {
  readonly approval: PendingApproval
  readonly history: readonly ApprovalRecord[]
}

/** Mounted again when the state of the approval changes. */
function ApprovalPicture({ api, id }: { readonly api: AdkApi; readonly id: string }) {
  const labels = useInspectorLabels()
  const [life, setLife] = useState<ApprovalHistory | 'failed'>()
  useEffect(() => {
    let isCancelled = false
    api.readApproval(id).then(
      (read) => !isCancelled && setLife(read),
      () => !isCancelled && setLife('failed'),
    )
    return () => {
      isCancelled = true
    }
  }, [api, id])
  if (!life) return <p role="status">{labels.reading}</p>
  if (life === 'failed') return <p className="turn-error">{labels.unreadable}</p>
  const { approval, history } = life
  const { given, needed } = approval.approvals
  return (
    <article className="life">
      <h3>
        {approval.title ?? approval.toolName} <code>{JSON.stringify(approval.args)}</code>
      </h3>
      <ol className="life-stops">
        {readPath(history).map((stop) => (
          <StopView key={stop.stage} stop={stop} />
        ))}
      </ol>
      {needed > 1 && <p>{labels.votes(given, needed)}</p>}
      {countVotes(history) > 0 && given < needed && <p>{labels.secondPerson}</p>}
      <details>
        <summary>{labels.record}</summary>
        <ScrolledText>{history.map((line) => JSON.stringify(line)).join('\n')}</ScrolledText>
      </details>
    </article>
  )
}

function StopView({ stop }: { readonly stop: Stop }) {
  const labels = useInspectorLabels()
  const { stage, type, at, tookMs } = stop
  const Icon = type === undefined ? CircleDashed : (ICONS[type] ?? Check)
  return (
    <li className="stop" data-stage={stage} data-type={type ?? 'upcoming'}>
      {tookMs !== undefined && <span className="stop-took">{formatMs(tookMs)}</span>}
      <Icon aria-hidden="true" size={18} />
      <span className="stop-name">
        {type === undefined ? labels.upcoming[stage] : (labels.stops[type] ?? type)}
      </span>
      {at !== undefined && (
        <time dateTime={new Date(at).toISOString()}>
          {new Date(at).toLocaleTimeString(labels.locale)}
        </time>
      )}
    </li>
  )
}

const ICONS: Readonly<Record<string, typeof Check>> = {
  requested: ShieldQuestion,
  denied: X,
  expired: Clock,
  cancelled: X,
  started: Play,
  failed: X,
  lost: ShieldQuestion,
}
