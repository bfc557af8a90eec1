import { useTexts } from '../i18n/language.tsx'
import { Markdown } from './markdown.tsx'

interface ReasoningProps {
  readonly text: string
  readonly streaming: boolean
}

export function Reasoning({ text, streaming }: ReasoningProps) {
  const texts = useTexts()
  if (text === '') return null
  return (
    <details className="reasoning">
      <summary>{streaming ? texts.thinking : texts.thoughts}</summary>
      <Markdown text={text} streaming={streaming} />
    </details>
  )
}
