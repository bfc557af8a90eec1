import type { Problem } from '../chat/problem.ts'
import { useTexts } from '../i18n/language.tsx'
import type { Texts } from '../i18n/texts.ts'
import { Notice } from './notice.tsx'

interface ProblemCardProps {
  readonly problem: Problem
  readonly onRecover: () => void
}

export function ProblemCard({ problem, onRecover }: ProblemCardProps) {
  const texts = useTexts()
  const { title, text, action } = describe(problem, texts)
  const reloads = problem.kind === 'signed-out'
  return (
    <Notice
      title={title}
      text={text}
      action={action}
      onAction={reloads ? () => window.location.reload() : onRecover}
    />
  )
}

interface Description {
  readonly title: string
  readonly text: string
  readonly action?: string
}

function describe(problem: Problem, texts: Texts): Description {
  const { problem: words, retry, reconnect, reload } = texts
  switch (problem.kind) {
    case 'rate-limited':
      return {
        title: words.rateLimited,
        text: words.rateLimitedText(problem.seconds),
        action: retry,
      }
    case 'disconnected':
      return { title: words.disconnected, text: words.disconnectedText, action: reconnect }
    case 'busy':
      return { title: words.busy, text: words.busyText, action: retry }
    case 'blocked':
      return { title: words.blocked, text: words.blockedText }
    case 'signed-out':
      return { title: words.signedOut, text: words.signedOutText, action: reload }
    case 'refused':
      return { title: words.refused, text: problem.message }
    case 'unavailable':
      return { title: words.unavailable, text: words.unavailableText, action: retry }
  }
}
