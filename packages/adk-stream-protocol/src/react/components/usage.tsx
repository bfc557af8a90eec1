import type { Usage as UsageCount } from '../../protocol/message.ts'
import { useAdkTexts } from '../provider.tsx'

/** What an answer cost in tokens. */
export function Usage({
  usage,
}: {
  readonly usage: Pick<UsageCount, 'inputTokens' | 'outputTokens'>
}) {
  const { message, locale } = useAdkTexts()
  const count = (tokens: number): string => tokens.toLocaleString(locale)
  return (
    <span className="adk-usage">
      {message.usage(count(usage.inputTokens), count(usage.outputTokens))}
    </span>
  )
}
