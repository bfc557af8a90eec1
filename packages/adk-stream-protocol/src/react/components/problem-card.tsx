import { useCountdown } from '../hooks/use-countdown.ts'
import { useAdkTexts } from '../provider.tsx'
import type { Problem } from '../reading/problem.ts'
import type { ProblemTexts } from '../texts/texts.ts'

/** Why there is no answer, and the way on; that of `useAdkChat`. */
export interface ProblemCardProps {
  readonly problem: Problem
  /** Tries again, or reads on: whatever helps. */
  readonly onRecover: () => void
  /** For who is not signed in any more. Default: the page is loaded again. */
  readonly onReload?: () => void
}

/** Says what is wrong and offers the one thing to do about it. */
export function ProblemCard({ problem, onRecover, onReload = reload }: ProblemCardProps) {
  const texts = useAdkTexts()
  const retryAt = problem.kind === 'rate-limited' ? problem.retryAt : undefined
  const seconds = useCountdown(retryAt)
  const { title, text, action } = describe(problem, seconds, texts.problem)
  return (
    <div className="adk-problem" data-kind={problem.kind}>
      {/* Read out once, and not every second while it counts down. */}
      <div role="alert">
        <p className="adk-problem-title">{title}</p>
        {seconds === undefined && <p className="adk-problem-text">{text}</p>}
      </div>
      {seconds !== undefined && <p className="adk-problem-text">{text}</p>}
      {action && (
        <button
          type="button"
          className="adk-button adk-outlined"
          // It would be refused again.
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

function describe(problem: Problem, seconds: number | undefined, texts: ProblemTexts): Description {
  switch (problem.kind) {
    case 'rate-limited':
      return {
        title: texts.rateLimited,
        text: texts.rateLimitedText(seconds === 0 ? undefined : seconds),
        action: texts.retry,
      }
    case 'disconnected':
      return { ...texts.disconnected, action: texts.reconnect }
    case 'busy':
      return { ...texts.busy, action: texts.retry }
    case 'blocked':
    case 'unfinished':
      return texts[problem.kind]
    case 'signed-out':
      return { ...texts.signedOut, action: texts.reload }
    case 'refused':
      return { title: texts.refused, text: problem.message }
    case 'unavailable':
      return { ...texts.unavailable, action: texts.retry }
  }
}

function reload(): void {
  window.location.reload()
}
