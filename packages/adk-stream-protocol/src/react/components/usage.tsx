import type { Usage as UsageCount } from '../../protocol/message.ts'
import { useAdkLabels } from '../provider.tsx'

/** Shows the token usage of a reply. */
export function Usage({
  usage,
}: {
  readonly usage: Pick<UsageCount, 'inputTokens' | 'outputTokens'>
}) {
  const { message, locale } = useAdkLabels()
  const count = (tokens: number): string => tokens.toLocaleString(locale)
  return (
    <span className="adk-usage">
      {message.usage(count(usage.inputTokens), count(usage.outputTokens))}
    </span>
  )
}
