import { type KeyboardEvent, type RefObject, useEffect, useRef, useState } from 'react'

import { useAdkTexts } from '../provider.tsx'
import type { Decision } from '../reading/approval.ts'
import type { Arguments } from '../reading/call.ts'
import { ArgumentsForm } from './arguments-form.tsx'
import { ArgumentsTable } from './arguments-table.tsx'
import { DenyForm } from './deny-form.tsx'

interface ApprovalFormProps {
  readonly args: Arguments
  readonly editable: boolean
  readonly hidden: boolean
  readonly onDecide: (decision: Decision) => void
}

type Mode = 'choosing' | 'denying' | 'editing'

/** The ways to decide: approve, deny with a reason, approve something else. */
export function ApprovalForm({ args, editable, hidden, onDecide }: ApprovalFormProps) {
  const [mode, setMode] = useState<Mode>('choosing')
  const { denyRef, editRef } = useReturningFocus(mode)
  const leave = (): void => setMode('choosing')
  const onKeyDown = (event: KeyboardEvent): void => {
    // An input method closes its own window by this key.
    if (event.key !== 'Escape' || event.nativeEvent.isComposing) return
    event.stopPropagation()
    leave()
  }
  const approve = (edited?: Arguments): void =>
    onDecide({ approved: true, ...(edited && { args: edited }) })
  const deny = (reason: string | undefined): void =>
    onDecide({ approved: false, ...(reason !== undefined && { reason }) })
  const shared = { onKeyDown, onLeave: leave }
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
  const { approval } = useAdkTexts()
  return (
    <div className="adk-actions">
      <button
        type="button"
        className="adk-button adk-primary"
        aria-keyshortcuts="a"
        // What a second click adds to a first one must not be another decision.
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
