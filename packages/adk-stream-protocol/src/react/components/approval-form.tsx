import { type KeyboardEvent, type RefObject, useEffect, useId, useRef, useState } from 'react'

import { useAdkLabels } from '../provider.tsx'
import type { Decision } from '../reading/approval.ts'
import type { Arguments } from '../reading/call.ts'
import { ArgumentsForm } from './arguments-form.tsx'
import { ArgumentsTable } from './arguments-table.tsx'
import { FormActions } from './form-actions.tsx'

interface ApprovalFormProps {
  readonly args: Arguments
  readonly editable: boolean
  readonly hidden: boolean
  readonly onDecide: (decision: Decision) => void
}

type Mode = 'choosing' | 'denying' | 'editing'

/** Approves, denies with a reason, or approves edited arguments. */
export function ApprovalForm({ args, editable, hidden, onDecide }: ApprovalFormProps) {
  const [mode, setMode] = useState<Mode>('choosing')
  const { denyRef, editRef } = useReturnFocus(mode)
  const close = (): void => setMode('choosing')
  const onKeyDown = (event: KeyboardEvent): void => {
    // Escape also closes the candidate window of an input method.
    if (event.key !== 'Escape' || event.nativeEvent.isComposing) return
    event.stopPropagation()
    close()
  }
  const approve = (edited?: Arguments): void =>
    onDecide({ approved: true, ...(edited && { args: edited }) })
  const deny = (reason: string | undefined): void =>
    onDecide({ approved: false, ...(reason !== undefined && { reason }) })
  const shared = { onKeyDown, onClose: close }
  if (mode === 'editing')
    return <ArgumentsForm {...shared} args={args} hidden={hidden} onSubmit={approve} />
  return (
    <div className="adk-approval-form" hidden={hidden}>
      <ArgumentsTable args={args} />
      {mode === 'denying' ? (
        <DenyForm {...shared} onDeny={deny} />
      ) : (
        <Choices
          denyRef={denyRef}
          editRef={editRef}
          onApprove={approve}
          onDeny={() => setMode('denying')}
          onEdit={editable ? () => setMode('editing') : undefined}
        />
      )}
    </div>
  )
}

interface ChoicesProps {
  readonly denyRef: RefObject<HTMLButtonElement | null>
  readonly editRef: RefObject<HTMLButtonElement | null>
  readonly onApprove: () => void
  readonly onDeny: () => void
  readonly onEdit: (() => void) | undefined
}

function Choices({ denyRef, editRef, onApprove, onDeny, onEdit }: ChoicesProps) {
  const { approval } = useAdkLabels()
  return (
    <div className="adk-actions">
      <button
        type="button"
        className="adk-button adk-primary"
        aria-keyshortcuts="a"
        // The second click of a double click must not decide the next approval.
        onClick={({ detail }) => detail <= 1 && onApprove()}
      >
        {approval.approve}
      </button>
      <button
        type="button"
        className="adk-button adk-outlined"
        aria-keyshortcuts="d"
        ref={denyRef}
        onClick={onDeny}
      >
        {approval.deny}
      </button>
      {onEdit && (
        <button
          type="button"
          className="adk-button adk-outlined"
          aria-keyshortcuts="e"
          ref={editRef}
          onClick={onEdit}
        >
          {approval.edit}
        </button>
      )}
    </div>
  )
}

/** Returns the focus to the button that opened a form when the form closes. */
function useReturnFocus(mode: Mode) {
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

interface DenyFormProps {
  readonly onKeyDown: (event: KeyboardEvent) => void
  readonly onClose: () => void
  readonly onDeny: (reason: string | undefined) => void
}

/** Denies a call. The model receives the reason, if there is one. */
function DenyForm({ onKeyDown, onClose, onDeny }: DenyFormProps) {
  const { approval } = useAdkLabels()
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
      <FormActions label={approval.confirmDeny} danger onClose={onClose} />
    </form>
  )
}
