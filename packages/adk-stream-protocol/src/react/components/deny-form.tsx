import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react'

import { useAdkTexts } from '../provider.tsx'
import { FormActions } from './form-actions.tsx'

interface DenyFormProps {
  readonly onKeyDown: (event: KeyboardEvent) => void
  readonly onLeave: () => void
  readonly onDeny: (reason: string | undefined) => void
}

/** Denies a call, with a reason for the model if there is one. */
export function DenyForm({ onKeyDown, onLeave, onDeny }: DenyFormProps) {
  const { approval } = useAdkTexts()
  const [reason, setReason] = useState('')
  const inputRef = useRef<HTMLInputElement>(null)
  const id = useId()
  useEffect(() => inputRef.current?.focus(), [])
  return (
    <form
      className="adk-deny"
      onSubmit={(event) => {
        event.preventDefault()
        onDeny(reason.trim() || undefined)
      }}
    >
      <label htmlFor={id}>{approval.reason}</label>
      <input
        id={id}
        ref={inputRef}
        className="adk-field"
        maxLength={2000}
        value={reason}
        onChange={(event) => setReason(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <FormActions label={approval.denyNow} danger onLeave={onLeave} />
    </form>
  )
}
