import { useAdkTexts } from '../provider.tsx'
import { type Call, nameCall } from '../reading/call.ts'
import { CallDetails } from './call-details.tsx'
import { describeState, summarise } from './call-words.ts'

/** One call of a tool: what it is, how far it got, and on demand what went in and came out. */
export function ToolCard({ call }: { readonly call: Call }) {
  const texts = useAdkTexts()
  const name = nameCall(call)
  return (
    <div className="adk-tool" role="group" data-state={call.state} aria-label={name}>
      <header className="adk-tool-header">
        <span className="adk-dot" aria-hidden="true" />
        <code className="adk-tool-name">{name}</code>
        <span className="adk-tool-input">{summarise(call.input)}</span>
        <span className="adk-tool-state">{describeState(call.state, texts)}</span>
      </header>
      {call.state === 'output-error' && <p className="adk-failure">{call.errorText}</p>}
      <CallDetails call={call} />
    </div>
  )
}
