import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react'

import { isComposing } from '../composer/is-composing.ts'
import { useLabels } from '../i18n/language.tsx'

interface MessageEditorProps {
  readonly text: string
  /** Called with the edited text. */
  readonly onResend: (text: string) => void
  readonly onCancel: () => void
}

/** Edits a message in place and sends it again. */
export function MessageEditor({ text, onResend, onCancel }: MessageEditorProps) {
  const { actions } = useLabels().shell
  const [draft, setDraft] = useState(text)
  const hintId = useId()
  const inputRef = useRef<HTMLTextAreaElement>(null)
  useEffect(() => inputRef.current?.focus(), [])
  const resend = () => {
    if (draft.trim() !== '') onResend(draft.trim())
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (isComposing(event)) return
    if (event.key === 'Escape') onCancel()
    if (event.key !== 'Enter' || event.shiftKey) return
    event.preventDefault()
    resend()
  }
  return (
    <form
      className="message-editor"
      onSubmit={(event) => {
        event.preventDefault()
        resend()
      }}
    >
      <textarea
        ref={inputRef}
        rows={1}
        value={draft}
        aria-label={actions.editLabel}
        aria-describedby={hintId}
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <div className="message-editor-footer">
        <p id={hintId} className="fine">
          {actions.editHint}
        </p>
        <button type="button" className="outlined" onClick={onCancel}>
          {actions.cancel}
        </button>
        <button type="submit" className="primary" disabled={draft.trim() === ''}>
          {actions.resend}
        </button>
      </div>
    </form>
  )
}
