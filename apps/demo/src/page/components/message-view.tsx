import { memo } from 'react'

import { readApprovals } from '../chat/approval.ts'
import type { Message } from '../chat/message.ts'
import { useTexts } from '../i18n/language.tsx'
import { MessagePart } from './message-part.tsx'
import { Sources } from './sources.tsx'

interface MessageViewProps {
  readonly message: Message
  readonly streaming: boolean
  /** Makes the answer again; only the last one can be. */
  readonly onRegenerate: (() => void) | undefined
}

/** One message. `useChat` keeps the identity of a message that does not change, so that a chunk renders only its own. */
export const MessageView = memo(function MessageView(props: MessageViewProps) {
  const { message, streaming, onRegenerate } = props
  const texts = useTexts()
  const isUser = message.role === 'user'
  const approvals = readApprovals(message)
  return (
    <article className={isUser ? 'message user' : 'message assistant'} data-streaming={streaming}>
      <h2 className="visually-hidden">{isUser ? texts.you : texts.assistant}</h2>
      {message.parts.map((part, index) => (
        // Parts are only ever appended: their place is their identity.
        <MessagePart
          // oxlint-disable-next-line react/no-array-index-key
          key={index}
          part={part}
          role={message.role}
          streaming={streaming}
          approvals={approvals}
        />
      ))}
      <Sources parts={message.parts} />
      {!isUser && !streaming && <MessageFooter message={message} onRegenerate={onRegenerate} />}
    </article>
  )
})

function MessageFooter({ message, onRegenerate }: Omit<MessageViewProps, 'streaming'>) {
  const texts = useTexts()
  const { usage, modelVersion, stopped } = message.metadata ?? {}
  const facts = [
    stopped && texts.stopped,
    usage && texts.usage(usage.inputTokens, usage.outputTokens),
    modelVersion,
  ].filter((fact) => typeof fact === 'string')
  if (facts.length === 0 && !onRegenerate) return null
  return (
    <footer className="message-footer">
      {facts.map((fact) => (
        <span key={fact}>{fact}</span>
      ))}
      {onRegenerate && (
        <button type="button" className="link" onClick={onRegenerate}>
          {texts.retry}
        </button>
      )}
    </footer>
  )
}
