import { type UIMessage, isTextUIPart } from 'ai'
import {
  createContext,
  use,
  useState,
  type KeyboardEvent,
  useEffect,
  useId,
  useRef,
  type Ref,
} from 'react'
import { Check, Copy, Pencil } from 'lucide-react'

import { IconButton } from '../icon-button.tsx'
import { INPUT_ID, isComposing } from '../composer/composer.tsx'
import { useLabels } from '../i18n/language.tsx'

/** Replaces a message. Undefined while a reply is running. */
export const EditContext = createContext<((message: UIMessage, text: string) => void) | undefined>(
  undefined,
)

/** The ids of messages that the server refuses to replace, because an approved call has run since. */
export const LockedContext = createContext<ReadonlySet<string>>(new Set())

/** A stable function for `MessageList`. */
export function renderActions(message: UIMessage) {
  return <MessageActions message={message} />
}

/** Copies a message, or edits it if it is the person's own. */
function MessageActions({ message }: { readonly message: UIMessage }) {
  const onEdit = use(EditContext)
  const isLocked = use(LockedContext).has(message.id)
  const [editing, setEditing] = useState(false)
  const editRef = useRef<HTMLButtonElement>(null)
  const isCancelled = useRef(false)
  useEffect(() => {
    // During a reply there is no button to edit.
    if (!editing && isCancelled.current)
      (editRef.current ?? document.getElementById(INPUT_ID))?.focus()
    isCancelled.current = false
  }, [editing])
  const cancel = () => {
    isCancelled.current = true
    setEditing(false)
  }
  const text = toMarkdown(message)
  if (text === '') return null
  if (editing) {
    return (
      <MessageEditor
        text={text}
        isLocked={isLocked}
        onCancel={cancel}
        onResend={
          onEdit &&
          ((draft) => {
            setEditing(false)
            onEdit(message, draft)
          })
        }
      />
    )
  }
  return (
    <>
      <CopyButton text={text} />
      {message.role === 'user' && onEdit && (
        <EditButton ref={editRef} onEdit={() => setEditing(true)} />
      )}
    </>
  )
}

interface MessageEditorProps {
  readonly text: string
  /** Whether the server refuses to replace the message. */
  readonly isLocked: boolean
  /** Called with the edited text. Undefined while a reply is running: the editor stays, and its text with it. */
  readonly onResend: ((text: string) => void) | undefined
  readonly onCancel: () => void
}

/** Edits a message in place and sends it again. */
function MessageEditor({ text, isLocked, onResend, onCancel }: MessageEditorProps) {
  const { actions } = useLabels().shell
  const [draft, setDraft] = useState(text)
  const hintId = useId()
  const inputRef = useRef<HTMLTextAreaElement>(null)
  useEffect(() => inputRef.current?.focus(), [])
  const resend = () => {
    if (draft.trim() !== '') onResend?.(draft.trim())
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (isComposing(event)) return
    if (event.key === 'Escape') onCancel()
    if (event.key !== 'Enter' || event.shiftKey) return
    event.preventDefault()
    // A held key has opened the editor, and must not replace the message.
    if (!event.repeat) resend()
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
          {isLocked ? actions.editLocked : actions.editHint}
        </p>
        <button type="button" className="outlined" onClick={onCancel}>
          {actions.cancel}
        </button>
        <button type="submit" className="primary" disabled={!onResend || draft.trim() === ''}>
          {actions.resend}
        </button>
      </div>
    </form>
  )
}

const SHOWN_MS = 2000

/** Copies text and announces the result. */
function CopyButton({ text }: { readonly text: string }) {
  const { actions } = useLabels().shell
  const [result, setResult] = useState<'copied' | 'failed'>()
  useEffect(() => {
    if (!result) return
    const timer = setTimeout(() => setResult(undefined), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [result])
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setResult('copied')
    } catch {
      // The browser may block it: without HTTPS, or by a setting.
      setResult('failed')
    }
  }
  return (
    <>
      <IconButton
        icon={result === 'copied' ? Check : Copy}
        label={actions.copy}
        className="action"
        onClick={() => void copy()}
      />
      <span className="visually-hidden" role="status">
        {result && actions[result]}
      </span>
    </>
  )
}

interface EditButtonProps {
  readonly onEdit: () => void
  readonly ref: Ref<HTMLButtonElement>
}

/** Opens the editor of a message. */
function EditButton({ onEdit, ref }: EditButtonProps) {
  const { edit } = useLabels().shell.actions
  return <IconButton ref={ref} icon={Pencil} label={edit} className="action" onClick={onEdit} />
}

/** Returns the text of a message as Markdown, without reasoning, calls and pictures. */
export function toMarkdown({ parts }: Pick<UIMessage, 'parts'>): string {
  return parts
    .filter(isTextUIPart)
    .map(({ text }) => text.trim())
    .filter((text) => text !== '')
    .join('\n\n')
}
