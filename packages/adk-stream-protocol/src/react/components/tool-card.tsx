import { useAdkLabels } from '../provider.tsx'
import { type Call, getToolName, isUnfinished, readFailure } from '../reading/call.ts'
import { CallDetails } from './call-details.tsx'
import { describeCallState, summarise } from './call-labels.ts'
import { LiteralText } from './arguments-table.tsx'

/** Shows a tool call: its name and state, and on demand its arguments and result. */
export function ToolCard({ call }: { readonly call: Call }) {
  const labels = useAdkLabels()
  const name = getToolName(call)
  const failure = readFailure(call)
  return (
    <div
      className="adk-tool"
      role="group"
      data-state={isUnfinished(call) ? 'input-available' : call.state}
      data-tool-call={call.toolCallId}
      data-failed={failure !== undefined}
      aria-label={name}
      // Focusable by script, and not by the Tab key.
      tabIndex={-1}
    >
      <header className="adk-tool-header">
        <span className="adk-dot" aria-hidden="true" />
        <code className="adk-tool-name">{name}</code>
        <span className="adk-tool-input">
          <LiteralText text={summarise(call.input)} />
        </span>
        <span className="adk-tool-state">{describeCallState(call, labels)}</span>
      </header>
      {failure?.reason && (
        <p className="adk-failure">
          <LiteralText text={failure.reason} />
        </p>
      )}
      <CallDetails call={call} />
    </div>
  )
}
