import { useAdkTexts } from '../provider.tsx'
import { TextView, type TextViewProps } from './text-view.tsx'

/** What the model thought, folded away. */
export function Reasoning({ text, streaming }: TextViewProps) {
  const { message } = useAdkTexts()
  if (text === '') return null
  return (
    <details className="adk-reasoning">
      <summary>{streaming ? message.thinking : message.thoughts}</summary>
      <TextView text={text} streaming={streaming} />
    </details>
  )
}
