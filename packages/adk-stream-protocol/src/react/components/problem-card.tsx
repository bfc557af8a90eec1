import { useCountdown } from './countdown.tsx'
import { useAdkLabels } from '../provider.tsx'
import type { Problem } from '../reading/problem.ts'
import type { ProblemLabels } from '../labels/labels.ts'

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
  /** Called if the person is signed out. Default: reloads the page. */
  readonly onReload?: () => void
}

/** Shows why there is no reply, with a button for the action that helps. */
export function ProblemCard({ problem, onRecover, onReload = reload }: ProblemCardProps) {
  const labels = useAdkLabels()
  const retryAt = problem.kind === 'rate-limited' ? problem.retryAt : undefined
  const seconds = useCountdown(retryAt)
  const { title, text, action } = describe(problem, seconds, labels.problem)
  return (
    <div className="adk-problem" data-kind={problem.kind}>
      {/* Announced once. The countdown is outside the alert, because it changes every second. */}
      <div role="alert">
        <p className="adk-problem-title">{title}</p>
        {seconds === undefined && <p className="adk-problem-text">{text}</p>}
      </div>
      {seconds !== undefined && <p className="adk-problem-text">{text}</p>}
      {action && (
        <button
          type="button"
          className="adk-button adk-outlined"
          // Until then, the server would reject the request again.
          disabled={(seconds ?? 0) > 0}
          onClick={problem.kind === 'signed-out' ? onReload : onRecover}
        >
          {action}
        </button>
      )}
    </div>
  )
}

interface Description {
  readonly title: string
  readonly text: string
  readonly action?: string
}

function describe(
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
      return { ...labels.busy, action: labels.retry }
    case 'blocked':
    case 'unfinished':
      return labels[problem.kind]
    case 'signed-out':
      return { ...labels.signedOut, action: labels.reload }
    case 'refused':
      return { title: labels.refused, text: problem.message }
    case 'unavailable':
      return { ...labels.unavailable, action: labels.retry }
  }
}

function reload(): void {
  window.location.reload()
}
