import type { UIMessage } from 'ai'

import { useAdkLabels } from '../provider.tsx'
import { isRecord } from '../../protocol/guards.ts'

interface CodeExecutionViewProps {
  readonly part: UIMessage['parts'][number]
}

/** Shows code that the model ran, or its result. Shows nothing for other data parts. */
export function CodeExecutionView({ part }: CodeExecutionViewProps) {
  const { message } = useAdkLabels()
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
