import { memo, type ReactNode, useState } from 'react'

import { readApprovals } from '../chat/approval.ts'
import type { Message } from '../chat/message.ts'
import { useTexts } from '../i18n/language.tsx'
import { CopyButton } from '../message-actions/copy-button.tsx'
import { EditButton } from '../message-actions/edit-button.tsx'
import { MessageEditor } from '../message-actions/message-editor.tsx'
import { RetryButton } from '../message-actions/retry-button.tsx'
import { toMarkdown } from '../message-actions/to-markdown.ts'
import { UsageMark } from '../message-actions/usage-mark.tsx'
import { MessagePart } from './message-part.tsx'
import { Sources } from './sources.tsx'

interface MessageViewProps {
  readonly message: Message
  readonly streaming: boolean
  /** Says something else in its place. */
  readonly onEdit: ((message: Message, text: string) => void) | undefined
  /** Makes the answer again; only the last one can be. */
  readonly onRegenerate: (() => void) | undefined
}

/** One message. `useChat` keeps the identity of a message that does not change, so that a chunk renders only its own. */
export const MessageView = memo(function MessageView(props: MessageViewProps) {
  const { message, streaming, onEdit, onRegenerate } = props
  const texts = useTexts()
  const isUser = message.role === 'user'
  const approvals = readApprovals(message)
  const parts = message.parts.map((part, index) => (
    // Parts are only ever appended: their place is their identity.
    <MessagePart
      // oxlint-disable-next-line react/no-array-index-key
      key={index}
      part={part}
      role={message.role}
      streaming={streaming}
      approvals={approvals}
    />
  ))
  return (
    <article className={isUser ? 'message user' : 'message assistant'} data-streaming={streaming}>
      <h2 className="visually-hidden">{isUser ? texts.you : texts.assistant}</h2>
      {isUser ? (
        <Said message={message} onEdit={onEdit}>
          {parts}
        </Said>
      ) : (
        parts
      )}
      <Sources parts={message.parts} />
      {!isUser && !streaming && <AnswerFooter message={message} onRegenerate={onRegenerate} />}
    </article>
  )
})

function AnswerFooter({
  message,
  onRegenerate,
}: Pick<MessageViewProps, 'message' | 'onRegenerate'>) {
  const text = toMarkdown(message)
  return (
    <footer className="message-footer">
      {text !== '' && <CopyButton text={text} />}
      {onRegenerate && <RetryButton onRetry={onRegenerate} />}
      {message.metadata && <UsageMark {...message.metadata} />}
    </footer>
  )
}

/** What the reader said, with the ways to copy and to change it. */
function Said({ message, onEdit, children }: SaidProps) {
  const [editing, setEditing] = useState(false)
  const text = toMarkdown(message)
  if (editing && onEdit) {
    return (
      <MessageEditor
        text={text}
        onCancel={() => setEditing(false)}
        onResend={(draft) => {
          setEditing(false)
          onEdit(message, draft)
        }}
      />
    )
  }
  return (
    <>
      {children}
      <footer className="message-footer">
        {text !== '' && <CopyButton text={text} />}
        {text !== '' && onEdit && <EditButton onEdit={() => setEditing(true)} />}
      </footer>
    </>
  )
}

interface SaidProps extends Pick<MessageViewProps, 'message' | 'onEdit'> {
  readonly children: ReactNode
}
