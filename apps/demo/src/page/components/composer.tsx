import { type KeyboardEvent, type RefObject, useEffect, useId, useState } from 'react'

import { useTexts } from '../i18n/language.tsx'

interface ComposerProps {
  readonly inputRef: RefObject<HTMLTextAreaElement | null>
  readonly busy: boolean
  readonly onSend: (text: string) => void
  readonly onStop: () => void
}

export function Composer({ inputRef, busy, onSend, onStop }: ComposerProps) {
  const texts = useTexts()
  const [text, setText] = useState('')
  const hintId = useId()
  useEffect(() => inputRef.current?.focus(), [inputRef])

  const submit = () => {
    if (busy || text.trim() === '') return
    onSend(text.trim())
    setText('')
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || isComposing(event)) return
    event.preventDefault()
    submit()
  }
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      <textarea
        ref={inputRef}
        rows={1}
        value={text}
        aria-label={texts.message}
        aria-describedby={hintId}
        placeholder={texts.placeholder}
        enterKeyHint="send"
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      {/* One button in both roles: the focus stays on it when an answer begins or ends. */}
      <button
        type={busy ? 'button' : 'submit'}
        className="send"
        aria-label={busy ? texts.stop : texts.send}
        disabled={!busy && text.trim() === ''}
        onClick={busy ? onStop : undefined}
      >
        <svg viewBox="0 0 16 16" width="18" height="18" aria-hidden="true">
          {busy ? (
            <rect x="4" y="4" width="8" height="8" rx="1.5" />
          ) : (
            <path d="M8 13V3M3.5 7.5 8 3l4.5 4.5" />
          )}
        </svg>
      </button>
      <p id={hintId} className="hint">
        {texts.hint}
      </p>
    </form>
  )
}

/** Whether this key belongs to an input method: Enter then accepts the Japanese text and must not send it. */
function isComposing(event: KeyboardEvent): boolean {
  // Safari ends the composition before it reports the key; 229 is all that is left to tell it.
  // oxlint-disable-next-line typescript/no-deprecated
  return event.nativeEvent.isComposing || event.keyCode === 229
}
