import type { UIMessage } from 'ai'
import { createContext, use, useState } from 'react'

import { CopyButton } from './copy-button.tsx'
import { EditButton } from './edit-button.tsx'
import { MessageEditor } from './message-editor.tsx'
import { toMarkdown } from './to-markdown.ts'

/** Says something else in the place of a message; nothing while an answer is being written. */
export const EditContext = createContext<((message: UIMessage, text: string) => void) | undefined>(
  undefined,
)

/** For the list of messages, which wants a function that stays the same. */
export function renderActions(message: UIMessage) {
  return <MessageActions message={message} />
}

/** What can be done with a message: copied, and if the reader said it, changed and said again. */
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
