import type { TimelineWait } from 'adk-stream-protocol/client'

import { describeCall } from '../conversation/describe-call.ts'
import { useLabels } from '../i18n/language.tsx'
import { describeWaiting, type Waiting } from './describe-waiting.ts'
import { useInspectorLabels } from './use-inspector-labels.ts'
import { showInChat } from './show-in-chat.ts'
import { useNow } from './use-now.ts'

/** Says why the chat waits: for which call, for whom, and until when. */
export function WaitingNote(props: Omit<Waiting, 'now'>) {
  const labels = useInspectorLabels()
  const { calls } = useLabels()
  const describe = (wait: TimelineWait): string | undefined =>
    'toolName' in wait
      ? (describeCall(wait.toolName, wait.args, { phase: 'pending', labels: calls }) ??
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
