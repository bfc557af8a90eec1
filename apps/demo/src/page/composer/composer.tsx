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

/** What the page around the composer may ask of it. */
export interface ComposerHandle {
  focus(): void
  /** Begins a message about a picture that the reader chooses now. */
  askAboutPicture(text: string): void
  /** Adds a text to what is being written. */
  write(text: string): void
}

interface ComposerProps {
  readonly handleRef: RefObject<ComposerHandle | null>
  readonly busy: boolean
  readonly onSend: (draft: Draft) => void
  readonly onStop: () => void
  /** Beside the send button: where one speaks instead of writing. */
  readonly voice?: ReactNode
}

/** Where one writes: a text that grows, pictures beside it, one button to send and to stop. */
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

/** Goes to where one writes, from wherever the focus is. */
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
