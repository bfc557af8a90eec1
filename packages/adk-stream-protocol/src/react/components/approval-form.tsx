import type { KeyboardEvent as ReactKeyboardEvent, RefObject } from 'react'
import { useEffect, useId, useRef, useState } from 'react'

import { useAdkLabels } from '../provider.tsx'
import type { Decision, Approval } from '../reading/approval.ts'
import type { Arguments } from '../reading/call.ts'
import { ArgumentsForm, FormActions } from './arguments-form.tsx'
import { ArgumentsTable } from './arguments-table.tsx'
import type { ServerError } from '../reading/problem.ts'

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
  const onKeyDown = (event: ReactKeyboardEvent): void => {
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
  readonly onKeyDown: (event: ReactKeyboardEvent) => void
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

/** Shows the severity of a call, as text and as a colour. */
export function SeverityMark({
  severity,
}: {
  readonly severity: Approval['severity'] | undefined
}) {
  const labels = useAdkLabels()
  if (!severity) return null
  return (
    <span className="adk-severity" data-severity={severity}>
      {labels.approval.severity[severity]}
    </span>
  )
}

/** Shows why the server refused a decision. */
export function RefusalNote({ refusal }: { readonly refusal: ServerError | undefined }) {
  const { approval } = useAdkLabels()
  if (!refusal) return null
  return (
    <p className="adk-failure" role="alert">
      {approval.refusals[refusal.code] ?? refusal.message}
    </p>
  )
}

/**
 * Adds keyboard shortcuts to a card while the focus is inside it: `a` moves the focus to the approve button, `d` and `e` open the
 * forms. No single key decides, because a call may move money.
 */
export function useApprovalKeys<Card extends HTMLElement>(): RefObject<Card | null> {
  const cardRef = useRef<Card>(null)
  useEffect(() => {
    const card = cardRef.current
    if (!card) return
    const press = (event: KeyboardEvent): void => pressKey(card, event)
    card.addEventListener('keydown', press)
    return () => card.removeEventListener('keydown', press)
  }, [])
  return cardRef
}

function pressKey(card: HTMLElement, event: KeyboardEvent): void {
  const name = event.key.toLowerCase()
  if (!/^[ade]$/.test(name) || isHandledElsewhere(event)) return
  const button = card.querySelector<HTMLButtonElement>(`[aria-keyshortcuts="${name}"]`)
  if (!button || button.closest('[hidden]')) return
  event.preventDefault()
  // The page may use the same key for a shortcut of its own.
  event.stopPropagation()
  if (name === 'a') button.focus()
  else button.click()
}

function isHandledElsewhere(event: KeyboardEvent): boolean {
  if (event.altKey || event.ctrlKey || event.metaKey) return true
  return event.repeat || event.isComposing || isField(event.target)
}

function isField(target: EventTarget | null): boolean {
  return target instanceof Element && target.matches('input, textarea, select, [contenteditable]')
}
