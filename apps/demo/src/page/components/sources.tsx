import type { SourceUrlUIPart } from 'ai'

import type { Part } from '../chat/message.ts'
import { useTexts } from '../i18n/language.tsx'

interface SourcesProps {
  readonly parts: readonly Part[]
}

/** Where a grounded answer comes from. */
export function Sources({ parts }: SourcesProps) {
  const texts = useTexts()
  const sources = parts.filter((part) => part.type === 'source-url').filter(isWebPage)
  if (sources.length === 0) return null
  return (
    <div className="sources">
      <h3>{texts.sources}</h3>
      <ol>
        {sources.map(({ sourceId, url, title }) => (
          <li key={sourceId}>
            <a href={url} target="_blank" rel="noopener noreferrer">
              {title ?? url}
            </a>
          </li>
        ))}
      </ol>
    </div>
  )
}

/** The address comes from the model: a `javascript:` link must never get into the page. */
function isWebPage({ url }: SourceUrlUIPart): boolean {
  return /^https?:\/\//i.test(url)
}
