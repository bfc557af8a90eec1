import { useAdkLabels } from '../provider.tsx'
import { type Call, getToolName } from '../reading/call.ts'
import { LiteralText } from './arguments-table.tsx'

/** Shows the function, the arguments and the result of a call in a collapsed section. */
export function CallDetails({ call }: { readonly call: Call }) {
  const { tool } = useAdkLabels()
  return (
    <details className="adk-details">
      <summary>{tool.details}</summary>
      <FunctionName name={getToolName(call)} />
      <Json label={tool.arguments} value={call.input} />
      {call.state === 'output-available' && <Json label={tool.result} value={call.output} />}
    </details>
  )
}

/** Shows the name of a tool in the code, because its title may be a claim of an MCP server. */
export function FunctionName({ name }: { readonly name: string }) {
  const { tool } = useAdkLabels()
  return (
    <p className="adk-function">
      {tool.functionName}{' '}
      <code>
        <LiteralText text={name} />
      </code>
    </p>
  )
}

interface JsonProps {
  readonly label: string
  readonly value: unknown
}

function Json({ label, value }: JsonProps) {
  return (
    <figure className="adk-code">
      <figcaption>{label}</figcaption>
      <pre>
        <LiteralText text={JSON.stringify(value ?? null, null, 2)} />
      </pre>
    </figure>
  )
}
