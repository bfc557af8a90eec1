import type { UIMessage } from 'ai'
import { createContext, use, useState } from 'react'

import { CopyButton } from './copy-button.tsx'
import { EditButton } from './edit-button.tsx'
import { MessageEditor } from './message-editor.tsx'
import { toMarkdown } from './to-markdown.ts'

/** Replaces a message. Undefined while a reply is running. */
export const EditContext = createContext<((message: UIMessage, text: string) => void) | undefined>(
  undefined,
)

/** A stable function for `MessageList`. */
export function renderActions(message: UIMessage) {
  return <MessageActions message={message} />
}

/** Copies a message, or edits it if it is the person's own. */
function MessageActions({ message }: { readonly message: UIMessage }) {
  const onEdit = use(EditContext)
  const [editing, setEditing] = useState(false)
  const text = toMarkdown(message)
  if (text === '') return null
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
      <CopyButton text={text} />
      {message.role === 'user' && onEdit && <EditButton onEdit={() => setEditing(true)} />}
    </>
  )
}
