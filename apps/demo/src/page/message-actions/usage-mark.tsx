import type { Metadata } from '../chat/message.ts'
import { useTexts } from '../i18n/language.tsx'

/** What an answer cost, which model gave it, and whether it was stopped. */
export function UsageMark({ usage, modelVersion, stopped }: Metadata) {
  const texts = useTexts()
  const facts = [
    stopped && texts.stopped,
    usage && texts.usage(usage.inputTokens, usage.outputTokens),
    modelVersion,
  ].filter((fact) => typeof fact === 'string')
  if (facts.length === 0) return null
  return (
    <p className="usage">
      {facts.map((fact) => (
        <span key={fact}>{fact}</span>
      ))}
    </p>
  )
}
