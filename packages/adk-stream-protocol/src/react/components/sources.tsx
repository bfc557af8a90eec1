import type { SourceUrlUIPart, UIMessage } from 'ai'

import { useAdkTexts } from '../provider.tsx'

/** Where a grounded answer comes from. */
export function Sources({ parts }: Pick<UIMessage, 'parts'>) {
  const { message } = useAdkTexts()
  const sources = parts.filter((part) => part.type === 'source-url').filter(isWebPage)
  if (sources.length === 0) return null
  return (
    <div className="adk-sources">
      <h3>{message.sources}</h3>
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
