import { type KeyboardEvent, useEffect, useRef } from 'react'

import { isComposing } from '../composer/is-composing.ts'
import { useLabels } from '../i18n/language.tsx'

interface RenameFormProps {
  readonly title: string
  readonly onRename: (title: string) => void
  /** `byKey` is true if the form was closed by keyboard. */
  readonly onClose: (byKey: boolean) => void
}

const MAX_LENGTH = 200

/** Renames a chat in place. Enter and blur save the name, Escape discards it. */
export function RenameForm({ title, onRename, onClose }: RenameFormProps) {
  const { newName } = useLabels().shell.chats
  const inputRef = useRef<HTMLInputElement>(null)
  useEffect(() => inputRef.current?.select(), [])
  // Removing a focused field also fires a blur event.
  const closed = useRef(false)
  const close = (byKey: boolean) => {
    closed.current = true
    onClose(byKey)
  }
  const save = (byKey: boolean) => {
    if (closed.current) return
    const name = inputRef.current?.value.trim() ?? ''
    if (name !== '' && name !== title) onRename(name)
    close(byKey)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (isComposing(event)) return
    if (event.key === 'Enter') save(true)
    if (event.key !== 'Escape') return
    // Escape must not close the drawer around the field.
    event.preventDefault()
    event.stopPropagation()
    close(true)
  }
  return (
    <input
      ref={inputRef}
      className="rename"
      defaultValue={title}
      maxLength={MAX_LENGTH}
      aria-label={newName}
      onBlur={() => save(false)}
      onKeyDown={onKeyDown}
    />
  )
}
