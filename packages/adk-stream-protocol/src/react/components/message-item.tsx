import type { UIMessage } from 'ai'
import { memo, type ReactNode } from 'react'

import { useAdkTexts } from '../provider.tsx'
import { readApprovals } from '../reading/approval.ts'
import { isRecord } from '../../protocol/guards.ts'
import { isCall } from '../reading/call.ts'
import { MessagePartView } from './message-part-view.tsx'
import { Sources } from './sources.tsx'
import { Usage } from './usage.tsx'

/** A message, and what can be done with it. */
export interface MessageItemProps {
  readonly message: UIMessage
  readonly streaming: boolean
  /** Makes the answer again; only the last one can be. */
  readonly onRegenerate?: (() => void) | undefined
  /** What else can be done with the message. A function that stays the same. */
  readonly renderActions?: ((message: UIMessage) => ReactNode) | undefined
}

/** One message. `useChat` keeps the identity of a message that does not change, so that a chunk renders only its own. */
export const MessageItem = memo(function MessageItem(props: MessageItemProps) {
  const { message, streaming } = props
  const texts = useAdkTexts()
  const isUser = message.role === 'user'
  const approvals = readApprovals(message)
  return (
    <article className="adk-message" data-role={message.role} data-streaming={streaming}>
      <h2 className="adk-hidden">{isUser ? texts.message.you : texts.message.assistant}</h2>
      {message.parts.map((part, index) => (
        // Parts are only ever appended: their place is their identity.
        <MessagePartView
          // oxlint-disable-next-line react/no-array-index-key
          key={index}
          // A copy: the message that the AI SDK (6.0.320) begins an answer with is the one it goes on writing in, and what was
          // shown of a part must not change with it.
          part={{ ...part }}
          role={message.role}
          streaming={streaming}
          approval={isCall(part) ? approvals.get(part.toolCallId) : undefined}
        />
      ))}
      <Sources parts={message.parts} />
      {!streaming && <MessageFooter {...props} />}
    </article>
  )
})

function MessageFooter({ message, onRegenerate, renderActions }: MessageItemProps) {
  const texts = useAdkTexts()
  const metadata = isRecord(message.metadata) ? message.metadata : {}
  const { usage, modelVersion, stopped } = metadata
  const actions = renderActions?.(message)
  const isEmpty = !usage && !modelVersion && !stopped && !onRegenerate && !actions
  if (isEmpty) return null
  return (
    <footer className="adk-message-footer">
      {stopped === true && <span>{texts.message.stopped}</span>}
      {isUsage(usage) && <Usage usage={usage} />}
      {typeof modelVersion === 'string' && <span>{modelVersion}</span>}
      {onRegenerate && (
        <button type="button" className="adk-link" onClick={onRegenerate}>
          {texts.message.retry}
        </button>
      )}
      {actions}
    </footer>
  )
}

function isUsage(value: unknown): value is { inputTokens: number; outputTokens: number } {
  if (!isRecord(value)) return false
  return typeof value['inputTokens'] === 'number' && typeof value['outputTokens'] === 'number'
}
