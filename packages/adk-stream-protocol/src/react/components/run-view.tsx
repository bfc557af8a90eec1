import type { UIMessage } from 'ai'

import { useAdkTexts } from '../provider.tsx'
import { isRecord } from '../../protocol/guards.ts'

interface RunViewProps {
  readonly part: UIMessage['parts'][number]
}

/** Code that the model ran, or what came of it; nothing for data that is not for the eye. */
export function RunView({ part }: RunViewProps) {
  const { message } = useAdkTexts()
  const data = 'data' in part && isRecord(part.data) ? part.data : {}
  const isCode = part.type === 'data-executable-code'
  if (!isCode && part.type !== 'data-code-execution-result') return null
  const text = isCode ? data['code'] : data['output']
  if (typeof text !== 'string') return null
  return (
    <figure className="adk-code">
      <figcaption>{isCode ? message.code : message.codeResult}</figcaption>
      <pre>{text}</pre>
    </figure>
  )
}
