import {
  type ClipboardEvent,
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
  useEffect,
  useId,
  useImperativeHandle,
  useRef,
} from 'react'

import { picturesIn } from '../attachments/pictures-in.ts'
import { useLabels } from '../i18n/language.tsx'
import { DropZone } from './drop-zone.tsx'
import { isComposing } from './is-composing.ts'
import { PictureButton } from './picture-button.tsx'
import { PictureProblems, Previews } from './previews.tsx'
import { SendButton } from './send-button.tsx'
import { type Draft, useDraft } from './use-draft.ts'

/** The methods of the composer for the page around it. */
export interface ComposerHandle {
  focus(): void
  /** Starts a message with this text and opens the file picker. */
  askAboutPicture(text: string): void
  /** Appends text to the draft. */
  write(text: string): void
}

interface ComposerProps {
  readonly handleRef: RefObject<ComposerHandle | null>
  readonly busy: boolean
  readonly onSend: (draft: Draft) => void
  readonly onStop: () => void
  /** The voice controls next to the send button. */
  readonly voice?: ReactNode
}

/** The message input: a growing text field, pictures, and one button that sends or stops. */
export function Composer({ handleRef, busy, onSend, onStop, voice }: ComposerProps) {
  const labels = useLabels()
  const { text, setText, pictures, isEmpty, take } = useDraft()
  const inputRef = useRef<HTMLTextAreaElement>(null)
  const chooserRef = useRef<HTMLInputElement>(null)
  const hintId = useId()
  const focus = () => inputRef.current?.focus()
  useEffect(() => inputRef.current?.focus(), [])
  useImperativeHandle(handleRef, () => ({
    focus,
    write: (added) => {
      setText((written) => (written.trim() === '' ? added : `${written}\n${added}`))
      focus()
    },
    askAboutPicture: (question) => {
      setText(question)
      chooserRef.current?.click()
      focus()
    },
  }))
  const submit = () => {
    if (!busy && !isEmpty) onSend(take())
  }
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      <PictureProblems problems={pictures.problems} />
      <div className="composer-box">
        <Previews pictures={pictures.held} onRemove={pictures.remove} />
        <textarea
          ref={inputRef}
          id={INPUT_ID}
          rows={1}
          value={text}
          aria-label={labels.message}
          aria-describedby={hintId}
          placeholder={labels.placeholder}
          enterKeyHint="send"
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => sendOnEnter(event, submit)}
          onPaste={(event) => pictures.add(takePasted(event))}
        />
        <div className="composer-tools">
          <PictureButton chooserRef={chooserRef} onChoose={pictures.add} onDone={focus} />
          <p id={hintId} className="hint">
            {labels.hint}
          </p>
          {voice}
          <SendButton busy={busy} disabled={isEmpty} onSend={submit} onStop={onStop} />
        </div>
      </div>
      <DropZone onDrop={pictures.add} />
    </form>
  )
}

const INPUT_ID = 'message-input'

/** Moves the focus to the message input. */
export function focusComposer(): void {
  document.getElementById(INPUT_ID)?.focus()
}

function sendOnEnter(event: KeyboardEvent, send: () => void): void {
  if (event.key !== 'Enter' || event.shiftKey || isComposing(event)) return
  event.preventDefault()
  send()
}

function takePasted(event: ClipboardEvent): File[] {
  const pasted = picturesIn(event.clipboardData)
  if (pasted.length > 0) event.preventDefault()
  return pasted
}
