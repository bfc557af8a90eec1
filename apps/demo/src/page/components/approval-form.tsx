import { type KeyboardEvent, type RefObject, useEffect, useId, useRef, useState } from 'react'

import type { Arguments, Decision } from '../chat/approval.ts'
import { useTexts } from '../i18n/language.tsx'
import { ArgumentsForm } from './arguments-form.tsx'
import { ArgumentsTable } from './arguments-table.tsx'

interface ApprovalFormProps {
  readonly args: Arguments
  readonly editable: boolean
  readonly hidden: boolean
  readonly onDecide: (decision: Decision) => void
}

type Mode = 'choosing' | 'denying' | 'editing'

/** The ways to decide: approve, deny with a reason, approve something else. */
export function ApprovalForm({ args, editable, hidden, onDecide }: ApprovalFormProps) {
  const texts = useTexts()
  const [mode, setMode] = useState<Mode>('choosing')
  const { denyRef, editRef } = useReturningFocus(mode)
  const leave = () => setMode('choosing')
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && !event.nativeEvent.isComposing) leave()
  }
  if (mode === 'editing') {
    return (
      <ArgumentsForm
        args={args}
        hidden={hidden}
        onKeyDown={onKeyDown}
        onLeave={leave}
        onSubmit={(edited) => onDecide({ approved: true, args: edited })}
      />
    )
  }
  return (
    <div className="approval-form" hidden={hidden}>
      <ArgumentsTable args={args} />
      {mode === 'denying' ? (
        <DenyForm onKeyDown={onKeyDown} onLeave={leave} onDecide={onDecide} />
      ) : (
        <div className="actions">
          <button type="button" className="primary" onClick={() => onDecide({ approved: true })}>
            {texts.approval.approve}
          </button>
          <button
            type="button"
            className="outlined"
            ref={denyRef}
            onClick={() => setMode('denying')}
          >
            {texts.approval.deny}
          </button>
          {editable && (
            <button
              type="button"
              className="outlined"
              ref={editRef}
              onClick={() => setMode('editing')}
            >
              {texts.approval.edit}
            </button>
          )}
        </div>
      )}
    </div>
  )
}

interface DenyFormProps {
  readonly onKeyDown: (event: KeyboardEvent) => void
  readonly onLeave: () => void
  readonly onDecide: (decision: Decision) => void
}

function DenyForm({ onKeyDown, onLeave, onDecide }: DenyFormProps) {
  const texts = useTexts()
  const [reason, setReason] = useState('')
  const inputRef = useRef<HTMLInputElement>(null)
  const id = useId()
  useEffect(() => inputRef.current?.focus(), [])
  const deny = () => {
    const said = reason.trim()
    onDecide({ approved: false, ...(said !== '' && { reason: said }) })
  }
  return (
    <form
      className="deny"
      onSubmit={(event) => {
        event.preventDefault()
        deny()
      }}
    >
      <label htmlFor={id}>{texts.approval.reason}</label>
      <input
        id={id}
        ref={inputRef}
        className="field"
        maxLength={2000}
        value={reason}
        onChange={(event) => setReason(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <div className="actions">
        <button type="submit" className="primary danger">
          {texts.approval.denyNow}
        </button>
        <button type="button" className="quiet" onClick={onLeave}>
          {texts.approval.back}
        </button>
      </div>
    </form>
  )
}

/** Gives the focus back to the button that was left, when the reader comes back from what it opened. */
function useReturningFocus(mode: Mode) {
  const denyRef = useRef<HTMLButtonElement>(null)
  const editRef = useRef<HTMLButtonElement>(null)
  const before = useRef<Mode>(mode)
  useEffect(() => {
    const origins: Partial<Record<Mode, RefObject<HTMLButtonElement | null>>> = {
      denying: denyRef,
      editing: editRef,
    }
    if (mode === 'choosing') origins[before.current]?.current?.focus()
    before.current = mode
  }, [mode])
  return { denyRef, editRef }
}
