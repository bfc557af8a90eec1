import type { ConnectionState, Timeline } from 'adk-stream-protocol/client'

import { useDescribeCall } from '../plugin/use-describe-call.ts'
import { useInspectorLabels, useNow } from './parts.tsx'
import { showInChat } from './inspection.ts'
import type { InspectorLabels } from './labels.ts'
import { formatTime, nameOf } from './format.ts'

type TimelineWait = Timeline['waits'][number]

/** Says why the chat waits: for which call, for whom, and until when. */
export function WaitingNote(props: Omit<Waiting, 'now'>) {
  const labels = useInspectorLabels()
  const describeCall = useDescribeCall()
  const describe = (wait: TimelineWait): string | undefined =>
    'toolName' in wait
      ? (describeCall(wait.toolName, wait.args, 'pending') ??
        ('title' in wait ? wait.title : undefined))
      : undefined
  const now = useNow(props.connection.state === 'lost')
  const waiting = { ...props, now }
  const { for: what, sentence } = describeWaiting(waiting, labels, describe)
  const first = what === 'connection' ? undefined : waiting.waits?.[0]
  return (
    <div className="waiting-note" data-for={what}>
      <span className="waiting-dot" aria-hidden="true" />
      <p role="status">{sentence}</p>
      {first && 'toolCallId' in first && (
        <button type="button" onClick={() => showInChat(first)}>
          {labels.show}
        </button>
      )}
    </div>
  )
}

/** What the chat waits for, as the page knows it. */
export interface Waiting {
  readonly connection: ConnectionState
  /** From the server. Undefined until they are read, or if the server does not store the chat. */
  readonly waits: readonly TimelineWait[] | undefined
  /** Whether this page receives a reply. */
  readonly busy: boolean
  readonly now: number
}

export type WaitingFor = TimelineWait['for'] | 'connection' | 'message'

/** Says in one sentence what the chat waits for, who must do what, and until when. */
export function describeWaiting(
  { connection, waits, busy, now }: Waiting,
  labels: InspectorLabels,
  describe: (wait: TimelineWait) => string | undefined,
): { readonly for: WaitingFor; readonly sentence: string } {
  const { waitsFor } = labels
  if (connection.state === 'lost') {
    const { retryAt } = connection
    const left = retryAt === undefined ? undefined : Math.max(0, Math.ceil((retryAt - now) / 1000))
    return { for: 'connection', sentence: waitsFor.connection(left) }
  }
  const [first, ...others] = waits ?? []
  if (!first)
    return busy
      ? { for: 'model', sentence: waitsFor.model }
      : { for: 'message', sentence: waitsFor.you }
  const more = others.length === 0 ? '' : waitsFor.more(others.length)
  return { for: first.for, sentence: `${describeWait(first, { labels, now }, describe)}${more}` }
}

function describeWait(
  wait: TimelineWait,
  { labels, now }: { readonly labels: InspectorLabels; readonly now: number },
  describe: (wait: TimelineWait) => string | undefined,
): string {
  const { waitsFor } = labels
  if (wait.for === 'model') return waitsFor.model
  const call = describe(wait) ?? wait.toolName
  if (wait.for !== 'approval') return waitsFor[wait.for](call)
  const { given, needed, approvers, byReader, votedByReader } = wait
  const until = formatTime(wait.deadline, labels, { now, timeStyle: 'short' })
  if (given > 0)
    return waitsFor.nextApprover({ call, given, needed, until, byReader, votedByReader })
  if (byReader) return waitsFor.decision({ call, needed, until })
  const names = [
    ...approvers.principals.map((id) => nameOf(id, labels, undefined)),
    ...approvers.roles,
  ]
  return waitsFor.others({ call, names, until })
}
