import { useAdkLabels } from '../provider.tsx'
import type { Approval } from '../reading/approval.ts'
import type { ServerError } from '../reading/problem.ts'

/** Shows the severity of a call, as text and as a colour. */
export function SeverityMark({
  severity,
}: {
  readonly severity: Approval['severity'] | undefined
}) {
  const labels = useAdkLabels()
  if (!severity) return null
  return (
    <span className="adk-severity" data-severity={severity}>
      {labels.approval.severity[severity]}
    </span>
  )
}

/** Shows why the server refused a decision. */
export function RefusalNote({ refusal }: { readonly refusal: ServerError | undefined }) {
  const { approval } = useAdkLabels()
  if (!refusal) return null
  return (
    <p className="adk-failure" role="alert">
      {approval.refusals[refusal.code] ?? refusal.message}
    </p>
  )
}
