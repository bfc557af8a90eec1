import { useRenderers } from '../provider.tsx'

export interface TextViewProps {
  readonly text: string
  readonly streaming: boolean
}

/** Text of the assistant, as the application shows it; plain where it does not say how. */
export function TextView({ text, streaming }: TextViewProps) {
  const { renderText } = useRenderers()
  if (renderText) return <>{renderText(text, { streaming })}</>
  return <p className="adk-text">{text}</p>
}
