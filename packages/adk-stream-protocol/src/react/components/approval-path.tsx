import { useAdkLabels } from '../provider.tsx'
import { toDisplayName } from '../reading/display-name.ts'
import { LiteralText } from './arguments-table.tsx'

interface ApprovalPathProps {
  /** The names of the agents that lead to the call. */
  readonly path: readonly string[] | undefined
  readonly toolName: string
}

/** Shows which agents lead to a call inside an agent that is used as a tool. Shows nothing for other calls. */
export function ApprovalPath({ path, toolName }: ApprovalPathProps) {
  const labels = useAdkLabels()
  if (path === undefined || path.length === 0) return null
  return (
    <p className="adk-path">
      <span className="adk-hidden">{labels.approval.path} </span>
      <LiteralText
        text={[...path, toolName].map((name) => toDisplayName(name, labels.tool.names)).join(' › ')}
      />
    </p>
  )
}
