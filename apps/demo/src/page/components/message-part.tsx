import { getToolName, isReasoningUIPart, isTextUIPart, isToolUIPart } from 'ai'

import type { Approval } from '../chat/approval.ts'
import { readDataPart } from '../chat/data-part.ts'
import type { Message, Part } from '../chat/message.ts'
import { useTexts } from '../i18n/language.tsx'
import { ApprovalCard } from './approval-card.tsx'
import { FileView } from './file-view.tsx'
import { Markdown } from './markdown.tsx'
import { Reasoning } from './reasoning.tsx'
import { ToolCard } from './tool-card.tsx'

interface MessagePartProps {
  readonly part: Part
  readonly role: Message['role']
  readonly streaming: boolean
  /** The approvals of the message, by the call they are about. */
  readonly approvals: ReadonlyMap<string, Approval>
}

/** Shows one part of a message; kinds the page does not know are left out. */
export function MessagePart({ part, role, streaming, approvals }: MessagePartProps) {
  if (isTextUIPart(part)) {
    if (role === 'user') return <p className="said">{part.text}</p>
    return <Markdown text={part.text} streaming={streaming && part.state === 'streaming'} />
  }
  if (isReasoningUIPart(part)) {
    return <Reasoning text={part.text} streaming={streaming && part.state === 'streaming'} />
  }
  if (isToolUIPart(part)) {
    const name = getToolName(part)
    const approval = approvals.get(part.toolCallId)
    if (approval) return <ApprovalCard name={name} call={part} approval={approval} />
    return <ToolCard name={name} call={part} />
  }
  if (part.type === 'file') {
    return <FileView url={part.url} mediaType={part.mediaType} filename={part.filename} />
  }
  if (part.type.startsWith('data-')) return <DataPart part={part} />
  return null
}

function DataPart({ part }: { readonly part: Part }) {
  const texts = useTexts()
  const data = readDataPart(part)
  if (!data) return null
  const label = data.type === 'data-executable-code' ? texts.code : texts.codeResult
  const text = data.type === 'data-executable-code' ? data.data.code : data.data.output
  return (
    <figure className="run">
      <figcaption>{label}</figcaption>
      <pre>{text}</pre>
    </figure>
  )
}
