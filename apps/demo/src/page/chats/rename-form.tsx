import { type KeyboardEvent, useEffect, useRef } from 'react'

import { isComposing } from '../composer/is-composing.ts'
import { useLabels } from '../i18n/language.tsx'

interface RenameFormProps {
  readonly title: string
  readonly onRename: (title: string) => void
  /** Whether the reader goes on by keyboard from here. */
  readonly onClose: (byKey: boolean) => void
}

const LONGEST = 200

/** Gives a chat another name, in its place: Enter or leaving the field takes it, Escape does not. */
export function RenameForm({ title, onRename, onClose }: RenameFormProps) {
  const { newName } = useLabels().shell.chats
  const inputRef = useRef<HTMLInputElement>(null)
  useEffect(() => inputRef.current?.select(), [])
  // A field that goes away while it has the focus is left, too.
  const closed = useRef(false)
  const close = (byKey: boolean) => {
    closed.current = true
    onClose(byKey)
  }
  const take = (byKey: boolean) => {
    if (closed.current) return
    const name = inputRef.current?.value.trim() ?? ''
    if (name !== '' && name !== title) onRename(name)
    close(byKey)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (isComposing(event)) return
    if (event.key === 'Enter') take(true)
    if (event.key !== 'Escape') return
    // Only the field is left, not the drawer around it.
    event.preventDefault()
    event.stopPropagation()
    close(true)
  }
  return (
    <input
      ref={inputRef}
      className="rename"
      defaultValue={title}
      maxLength={LONGEST}
      aria-label={newName}
      onBlur={() => take(false)}
      onKeyDown={onKeyDown}
    />
  )
}
