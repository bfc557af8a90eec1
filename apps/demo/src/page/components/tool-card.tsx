import type { Call } from '../chat/approval.ts'
import { useTexts } from '../i18n/language.tsx'
import type { Texts } from '../i18n/texts.ts'

interface ToolCardProps {
  readonly name: string
  readonly call: Call
}

/** One call of a tool: what it is, how far it got, and on demand what went in and came out. */
export function ToolCard({ name, call }: ToolCardProps) {
  const texts = useTexts()
  const failure = call.state === 'output-error' ? call.errorText : undefined
  return (
    <div className="tool" role="group" data-state={call.state} aria-label={name}>
      <header className="tool-header">
        <span className="tool-dot" aria-hidden="true" />
        <code className="tool-name">{name}</code>
        <span className="tool-input">{summarise(call.input)}</span>
        <span className="tool-state">{describeState(call.state, texts)}</span>
      </header>
      {failure !== undefined && <p className="tool-failure">{failure}</p>}
      <CallDetails call={call} />
    </div>
  )
}

/** What went into a call and came out of it, folded away. */
export function CallDetails({ call }: { readonly call: Call }) {
  const texts = useTexts()
  return (
    <details>
      <summary>{texts.tool.details}</summary>
      <Json label={texts.tool.arguments} value={call.input} />
      {call.state === 'output-available' && <Json label={texts.tool.result} value={call.output} />}
    </details>
  )
}

/** The arguments at a glance: the values that are short enough to read. */
function summarise(input: unknown): string {
  if (typeof input !== 'object' || input === null) return ''
  const values = Object.values(input).filter(
    (value) => typeof value === 'number' || (typeof value === 'string' && value !== ''),
  )
  return values.join(', ')
}

/** How far a call got, in one word. */
export function describeState(state: Call['state'], { tool }: Texts): string {
  switch (state) {
    case 'input-streaming':
      return tool.preparing
    case 'input-available':
    case 'approval-responded':
      return tool.running
    case 'approval-requested':
      return tool.waiting
    case 'output-available':
      return tool.done
    case 'output-error':
      return tool.failed
    case 'output-denied':
      return tool.denied
  }
}

interface JsonProps {
  readonly label: string
  readonly value: unknown
}

function Json({ label, value }: JsonProps) {
  return (
    <figure className="json">
      <figcaption>{label}</figcaption>
      <pre>{JSON.stringify(value ?? null, null, 2)}</pre>
    </figure>
  )
}
