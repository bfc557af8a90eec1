import { useAdkTexts } from '../provider.tsx'
import { type Call, nameCall, readFailure } from '../reading/call.ts'
import { CallDetails } from './call-details.tsx'
import { describeState, summarise } from './call-words.ts'
import { LiteralText } from './literal-text.tsx'

/** One call of a tool: what it is, how far it got, and on demand what went in and came out. */
export function ToolCard({ call }: { readonly call: Call }) {
  const texts = useAdkTexts()
  const name = nameCall(call)
  const failure = readFailure(call)
  return (
    <div
      className="adk-tool"
      role="group"
      data-state={call.state}
      data-failed={failure !== undefined}
      aria-label={name}
    >
      <header className="adk-tool-header">
        <span className="adk-dot" aria-hidden="true" />
        <code className="adk-tool-name">{name}</code>
        <span className="adk-tool-input">
          <LiteralText text={summarise(call.input)} />
        </span>
        <span className="adk-tool-state">{describeState(call, texts)}</span>
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
