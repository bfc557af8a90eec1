import type { FileUIPart } from 'ai'
import { ImagePlus } from 'lucide-react'
import {
  type ClipboardEvent,
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
  useEffect,
  useId,
  useImperativeHandle,
  useRef,
  useState,
} from 'react'

import { PICTURE_TYPES } from '../attachments/check-picture.ts'
import { picturesIn } from '../attachments/pictures-in.ts'
import { usePictures } from '../attachments/use-pictures.ts'
import { useTexts } from '../i18n/language.tsx'
import { DropZone } from './drop-zone.tsx'
import { isComposing } from './is-composing.ts'
import { PictureProblems, Previews } from './previews.tsx'
import { SendButton } from './send-button.tsx'

/** What is said: a text, pictures, or both. */
export interface Draft {
  readonly text: string
  readonly files: FileUIPart[]
}

/** What the page around the composer may ask of it. */
export interface ComposerHandle {
  focus(): void
  /** Begins a message about a picture that the reader chooses now. */
  askAboutPicture(text: string): void
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
  const texts = useTexts()
  const [text, setText] = useState('')
  const { pictures, problems, add, remove, take } = usePictures()
  const inputRef = useRef<HTMLTextAreaElement>(null)
  const chooserRef = useRef<HTMLInputElement>(null)
  const hintId = useId()
  useEffect(() => inputRef.current?.focus(), [])
  useImperativeHandle(handleRef, () => ({
    focus: () => inputRef.current?.focus(),
    askAboutPicture: (question) => {
      setText(question)
      chooserRef.current?.click()
      inputRef.current?.focus()
    },
  }))

  const isEmpty = text.trim() === '' && pictures.length === 0
  const submit = () => {
    if (busy || isEmpty) return
    onSend({ text: text.trim(), files: take() })
    setText('')
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || isComposing(event)) return
    event.preventDefault()
    submit()
  }
  const onPaste = (event: ClipboardEvent) => {
    const pasted = picturesIn(event.clipboardData)
    if (pasted.length === 0) return
    event.preventDefault()
    add(pasted)
  }
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      <PictureProblems problems={problems} />
      <div className="composer-box">
        <Previews pictures={pictures} onRemove={remove} />
        <textarea
          ref={inputRef}
          id="message-input"
          rows={1}
          value={text}
          aria-label={texts.message}
          aria-describedby={hintId}
          placeholder={texts.placeholder}
          enterKeyHint="send"
          onChange={(event) => setText(event.target.value)}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
        />
        <div className="composer-tools">
          <button
            type="button"
            className="icon-button"
            aria-label={texts.shell.composer.attach}
            title={texts.shell.composer.attach}
            onClick={() => chooserRef.current?.click()}
          >
            <ImagePlus aria-hidden="true" />
          </button>
          <p id={hintId} className="hint">
            {texts.hint}
          </p>
          {voice}
          <SendButton busy={busy} disabled={isEmpty} onStop={onStop} />
        </div>
      </div>
      <input
        ref={chooserRef}
        type="file"
        accept={PICTURE_TYPES.join(',')}
        multiple
        hidden
        aria-label={texts.shell.composer.attach}
        onChange={(event) => {
          add([...(event.target.files ?? [])])
          // The same picture can be chosen again after it was removed.
          event.target.value = ''
          inputRef.current?.focus()
        }}
      />
      <DropZone onDrop={add} />
    </form>
  )
}
