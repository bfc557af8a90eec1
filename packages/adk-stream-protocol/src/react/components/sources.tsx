import type { SourceUrlUIPart, UIMessage } from 'ai'

import { useAdkLabels } from '../provider.tsx'

/** Lists the web sources of a grounded reply. */
export function Sources({ parts }: Pick<UIMessage, 'parts'>) {
  const { message } = useAdkLabels()
  const sources = parts.filter((part) => part.type === 'source-url').filter(isWebUrl)
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

/** The URL comes from the model. A `javascript:` link must never reach the page. */
function isWebUrl({ url }: SourceUrlUIPart): boolean {
  return /^https?:\/\//i.test(url)
}
