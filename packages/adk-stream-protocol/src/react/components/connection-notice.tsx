import type { AdkChat } from '../hooks/use-adk-chat.ts'
import { useIsOnline } from '../hooks/use-is-online.ts'
import type { AdkLabels } from '../labels/labels.ts'
import { useAdkLabels } from '../provider.tsx'
import { isBusy } from '../../client/sync/attachable-chat.ts'
import { readLoss } from '../reading/problem.ts'
import { useCountdown } from './countdown.tsx'

/**
 * Props of `ConnectionNotice`.
 *
 * @inline
 */
export interface ConnectionNoticeProps {
  /** The result of `useAdkChat`. */
  readonly chat: Pick<
    AdkChat,
    'connection' | 'messages' | 'status' | 'unconfirmed' | 'problem' | 'reconnect'
  > &
    Partial<Pick<AdkChat, 'waitingDecisions'>>
}

/**
 * Shows that the connection is lost: what happens to the interrupted message, reply or decision, and when the next attempt follows.
 * Empty while there is a connection. A page with this notice does not need `ProblemCard` for the kind `disconnected`.
 */
export function ConnectionNotice({ chat }: ConnectionNoticeProps) {
  const labels = useAdkLabels()
  const isOnline = useIsOnline()
  const { connection, problem, reconnect } = chat
  const { tryNow, nextAttempt, kept } = labels.connectionNotice
  const seconds = useCountdown(connection.state === 'lost' ? connection.retryAt : undefined)
  const title = describeLoss({ isOnline, state: connection.state, problem }, labels)
  return (
    <div className="adk-connection-notice" data-shown={title !== undefined}>
      {/* There before its text, so that screen readers announce it. The countdown changes every second and is not announced. */}
      <div role="status">
        {title !== undefined && (
          <>
            <p className="adk-connection-title">{title}</p>
            <p>{kept[findInterrupted(chat)]}</p>
          </>
        )}
      </div>
      {title !== undefined && isOnline && seconds !== undefined && seconds > 0 && (
        <span className="adk-connection-attempt" aria-hidden="true">
          {nextAttempt(seconds)}
        </span>
      )}
      {title !== undefined && isOnline && (
        <button type="button" className="adk-button adk-outlined" onClick={reconnect}>
          {tryNow}
        </button>
      )}
    </div>
  )
}

interface Loss extends Pick<AdkChat, 'problem'> {
  readonly isOnline: boolean
  readonly state: AdkChat['connection']['state']
}

/** Returns undefined if nothing is lost. */
function describeLoss({ isOnline, state, problem }: Loss, labels: AdkLabels): string | undefined {
  if (!isOnline) return labels.connectionNotice.offline
  if (state === 'lost' || state === 'closed') return labels.connection[state]
  return problem?.kind === 'disconnected' ? labels.problem.disconnected.title : undefined
}

function findInterrupted({
  messages,
  status,
  unconfirmed,
  waitingDecisions,
  problem,
}: ConnectionNoticeProps['chat']): 'message' | 'reply' | 'decision' | 'nothing' {
  if (unconfirmed.size > 0 || (waitingDecisions?.size ?? 0) > 0) return 'decision'
  if (isBusy({ status }) || problem?.kind === 'disconnected') return readLoss(messages)
  return 'nothing'
}
