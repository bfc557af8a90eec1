import type { Approval } from '../reading/approval.ts'
import { useAdkTexts } from '../provider.tsx'

/** How grave a call is, in words and in colour. */
export function SeverityMark({
  severity,
}: {
  readonly severity: Approval['severity'] | undefined
}) {
  const texts = useAdkTexts()
  if (!severity) return null
  return (
    <span className="adk-severity" data-severity={severity}>
      {texts.approval.severity[severity]}
    </span>
  )
}
