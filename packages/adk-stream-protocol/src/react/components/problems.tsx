import { useState } from 'react'

import type { AdkChat } from '../hooks/use-adk-chat.ts'
import { useIsOnline } from '../hooks/use-connection.ts'
import type { AdkLabels, ProblemLabels } from '../labels/labels.ts'
import { useAdkLabels, useDescribeCall } from '../provider.tsx'
import { toLiteral } from '../../shared/literal-text.ts'
import { isBusy } from '../../client/sync/attachable-chat.ts'
import { readLoss, toServerError, type Problem } from '../reading/problem.ts'
import { useCountdown } from './countdown.tsx'
import type { ConnectionState } from '../../client/connection/connection-state.ts'
import { OutlinedButton } from './buttons.tsx'
import { returnFocus } from './focus.ts'

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
    Partial<Pick<AdkChat, 'waitingDecisions' | 'refusedDecisions' | 'dismissRefused'>>
}

/**
 * Shows that the connection is lost: what happens to the interrupted message, reply or decision, and when the next attempt follows.
 * Empty while there is a connection, unless a decision that waited for it was refused, and its card is not shown. A page with this notice does not need `ProblemCard` for the kind `disconnected`.
 */
export function ConnectionNotice({ chat }: ConnectionNoticeProps) {
  const labels = useAdkLabels()
  const isOnline = useIsOnline()
  const { connection, problem, reconnect } = chat
  const { kept, signInAgain } = labels.connectionNotice
  const title = describeLoss({ isOnline, connection, problem }, labels)
  const isSignedOut = isOnline && connection.isSignedOut === true
  const [hasBeenLost, setLost] = useState(false)
  if (title !== undefined && !hasBeenLost) setLost(true)
  return (
    <>
      <RefusedDecisions chat={chat} />
      <div className="adk-connection-notice" data-shown={title !== undefined}>
        {/* There before its text, so that screen readers announce it. The countdown changes every second and is not announced. */}
        <div role="status">
          {title !== undefined && (
            <>
              <p className="adk-connection-title">{title}</p>
              <p>{isSignedOut ? signInAgain : kept[findInterrupted(chat)]}</p>
            </>
          )}
          {/* The notice disappears. Screen readers announce why. */}
          {title === undefined && hasBeenLost && (
            <p className="adk-hidden">{labels.connection.open}</p>
          )}
        </div>
        {title !== undefined && isOnline && (
          <NextAttempt connection={connection} reconnect={reconnect} />
        )}
      </div>
    </>
  )
}

/** Says when the next attempt to connect follows, with a button that makes it now. */
function NextAttempt({ connection, reconnect }: Pick<AdkChat, 'connection' | 'reconnect'>) {
  const { tryNow, nextAttempt } = useAdkLabels().connectionNotice
  const { state, isSignedOut } = connection
  const seconds = useCountdown(state === 'lost' ? connection.retryAt : undefined)
  // A closed connection is opened with the next request.
  const needsRequest = isSignedOut === true && state === 'closed'
  return (
    <>
      {seconds !== undefined && seconds > 0 && (
        <span className="adk-connection-attempt" aria-hidden="true">
          {nextAttempt(seconds)}
        </span>
      )}
      {!needsRequest && (
        <OutlinedButton ref={returnFocus} onClick={reconnect}>
          {tryNow}
        </OutlinedButton>
      )}
    </>
  )
}

/** Says which decisions did not count, and why, until the person has read it. */
function RefusedDecisions({ chat }: ConnectionNoticeProps) {
  const { connectionNotice: labels, approval: approvalLabels } = useAdkLabels()
  const describe = useDescribeCall()
  const refused = chat.refusedDecisions ?? []
  return refused.map(({ approvalId, decision, error, approval }) => {
    const { code, message } = toServerError(error)
    const action =
      approval && describe(approval.toolName, approval.args, approval.preview?.headline)
    const kind = decision.approved ? 'approval' : 'denial'
    return (
      <div key={approvalId} className="adk-connection-notice" data-shown="true">
        <div role="alert">
          <p className="adk-connection-title">
            {labels.refused[decision.payload === undefined ? kind : 'answer']}
          </p>
          {action !== undefined && <p>{action}</p>}
          <p>{approvalLabels.refusals[code] ?? toLiteral(message)}</p>
        </div>
        <OutlinedButton ref={returnFocus} onClick={() => chat.dismissRefused?.(approvalId)}>
          {labels.dismiss}
        </OutlinedButton>
      </div>
    )
  })
}

interface Loss extends Pick<AdkChat, 'problem'> {
  readonly isOnline: boolean
  readonly connection: ConnectionState
}

/** Returns undefined if nothing is lost. */
function describeLoss(
  { isOnline, connection: { state, isSignedOut }, problem }: Loss,
  labels: AdkLabels,
): string | undefined {
  if (!isOnline) return labels.connectionNotice.offline
  // `ProblemCard` says so, with what to do.
  if (problem?.kind === 'signed-out') return undefined
  if (isSignedOut === true) return labels.problem.signedOut.title
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

/** Shows the state of the connection, and the seconds until it reconnects. */
export function ConnectionBadge({ connection }: { readonly connection: ConnectionState }) {
  const labels = useAdkLabels()
  const { state, retryAt, isSignedOut } = connection
  const seconds = useCountdown(retryAt)
  return (
    <span className="adk-connection" data-state={state}>
      <span className="adk-dot" aria-hidden="true" />
      <span role="status">
        {isSignedOut === true ? labels.problem.signedOut.title : labels.connection[state]}
      </span>
      {/* Hidden from screen readers, which would announce every second. */}
      {seconds !== undefined && seconds > 0 && <span aria-hidden="true">{seconds}</span>}
    </span>
  )
}

/**
 * Props of `ProblemCard`.
 *
 * @inline
 */
export interface ProblemCardProps {
  /** The `problem` of `useAdkChat`. */
  readonly problem: Problem
  /** Called to recover. Pass `recover` of `useAdkChat`. */
  readonly onRecover: () => void
  /** Called by a second button if the person is signed out, for example to sign in. Default: reloads the page. */
  readonly onReload?: () => void
}

/** Shows why there is no reply, with a button for the action that helps. */
export function ProblemCard({ problem, onRecover, onReload = reload }: ProblemCardProps) {
  const labels = useAdkLabels()
  const retryAt = problem.kind === 'rate-limited' ? problem.retryAt : undefined
  const seconds = useCountdown(retryAt)
  const { title, text, action } = describeProblem(problem, seconds, labels.problem)
  return (
    <div className="adk-problem" data-kind={problem.kind} ref={returnFocus}>
      {/* Announced once. The countdown is outside the alert, because it changes every second. */}
      <div role="alert">
        <p className="adk-problem-title">{title}</p>
        {seconds === undefined && <p className="adk-problem-text">{text}</p>}
      </div>
      {seconds !== undefined && <p className="adk-problem-text">{text}</p>}
      {action && (
        <OutlinedButton
          // Until then, the server would reject the request again.
          disabled={(seconds ?? 0) > 0}
          onClick={onRecover}
        >
          {action}
        </OutlinedButton>
      )}
      {problem.kind === 'signed-out' && (
        <OutlinedButton onClick={onReload}>{labels.problem.reload}</OutlinedButton>
      )}
    </div>
  )
}

interface Description {
  readonly title: string
  readonly text: string
  readonly action?: string
}

/** Says under a reply that it failed, and why. */
export function FailedReply({ problem }: { readonly problem: Problem }) {
  const labels = useAdkLabels()
  const { title } = describeProblem(problem, undefined, labels.problem)
  return <p className="adk-reply-note">{labels.message.failed(title)}</p>
}

function describeProblem(
  problem: Problem,
  seconds: number | undefined,
  labels: ProblemLabels,
): Description {
  switch (problem.kind) {
    case 'rate-limited':
      return {
        title: labels.rateLimited,
        text: labels.rateLimitedText(seconds === 0 ? undefined : seconds),
        action: labels.retry,
      }
    case 'disconnected':
      return {
        ...(problem.lost === 'message' ? labels.unsent : labels.disconnected),
        action: labels.reconnect,
      }
    case 'busy':
    case 'overloaded':
    case 'mistake':
      return { ...labels[problem.kind], action: labels.retry }
    case 'blocked':
    case 'unfinished':
      return labels[problem.kind]
    case 'no-access':
      return labels.noAccess
    case 'signed-out':
      return { ...labels.signedOut, action: labels.retry }
    case 'refused': {
      const text = labels.refusals[problem.code] ?? problem.message
      // The messages that the person is to read are shown. What was refused can then be repeated.
      const action = problem.code === 'newer-messages' ? labels.dismiss : undefined
      return { title: labels.refused, text, ...(action !== undefined && { action }) }
    }
    case 'unavailable':
      return { ...labels.unavailable, action: labels.retry }
  }
}

function reload(): void {
  window.location.reload()
}
