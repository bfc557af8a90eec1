import { useAdkLabels, useRenderers } from '../provider.tsx'

interface TextViewProps {
  readonly text: string
  /** Whether more text follows. */
  readonly streaming: boolean
}

/** Shows text of the assistant with the application's `renderText`, or as plain text. */
export function TextView({ text, streaming }: TextViewProps) {
  const { renderText } = useRenderers()
  if (renderText) return <>{renderText(text, { streaming })}</>
  return <p className="adk-text">{text}</p>
}

/** Shows the model's reasoning in a collapsed section. */
export function Reasoning({ text, streaming }: TextViewProps) {
  const { message } = useAdkLabels()
  if (text === '') return null
  return (
    <details className="adk-reasoning">
      <summary>{streaming ? message.thinking : message.reasoning}</summary>
      <TextView text={text} streaming={streaming} />
    </details>
  )
}
