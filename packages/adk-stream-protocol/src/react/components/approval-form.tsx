import {
  type KeyboardEvent as ReactKeyboardEvent,
  type MouseEvent as ReactMouseEvent,
  type ReactNode,
  type RefObject,
  useEffect,
  useId,
  useRef,
  useState,
} from 'react'

import type { ShownPreview } from '../../protocol/preview.ts'
import { useAdkLabels } from '../provider.tsx'
import type { Approval, Decision } from '../reading/approval.ts'
import type { Arguments } from '../reading/call.ts'
import type { ServerError } from '../reading/problem.ts'
import type { Edit } from '../hooks/use-edit.ts'
import type { AdkLabels } from '../labels/labels.ts'
import type { Field } from '../reading/form-fields.ts'
import { readFields } from '../reading/read-fields.ts'
import { toLiteral } from '../../shared/literal-text.ts'
import { ArgumentsForm } from './arguments-form.tsx'
import { ArgumentsTable, LiteralText } from './call-details.tsx'
import { isComposing } from './composer.tsx'
import { returnFocus } from './focus.ts'
import { GrantOffers } from './grant-offers.tsx'
import {
  FormActions,
  HoldButton,
  ignoreHeldEnter,
  OutlinedButton,
  useMisplacedClicks,
} from './buttons.tsx'

/** What a person has typed about an approval. The card keeps it when a form closes and when the approval expires. */
export interface Draft {
  readonly fields?: readonly Field[] | undefined
  readonly reason: string
  /** Whether the form that edits the arguments is open. */
  readonly isEditing: boolean
  /** The id of the grant that the person has chosen. */
  readonly offer?: string | undefined
}

export const EMPTY_DRAFT: Draft = { reason: '', isEditing: false }

interface ApprovalFormProps {
  readonly approval: {
    readonly severity?: Approval['severity'] | undefined
    readonly hasPreview?: boolean | undefined
    readonly offers?: Approval['offers'] | undefined
  }
  /** The arguments of the call, for the words of the grants. Without them, no grant can be chosen. */
  readonly args?: Arguments | undefined
  /** What the call would do, as the person sees it. */
  readonly preview: ShownPreview | undefined
  /** The call as the person edits it. Undefined while the form is closed. */
  readonly edit?: Edit | undefined
  /** What the edited call would do, for the label of the button. Undefined if it has no description. */
  readonly description?: string | undefined
  /** Whether the person may edit the arguments. */
  readonly editable: boolean
  readonly hidden: boolean
  readonly draft: Draft
  readonly onDraft: (draft: Draft) => void
  readonly onDecide: (decision: Decision) => void
}

type Mode = 'choosing' | 'denying' | 'editing'

/** Approves, denies with a reason, or approves edited arguments. */
export function ApprovalForm(props: ApprovalFormProps) {
  const { approval, preview, edit, editable, hidden, draft, onDraft, onDecide } = props
  const labels = useAdkLabels()
  const [isDenying, setDenying] = useState(false)
  const unfinished = isDenying ? 'denying' : 'choosing'
  const mode: Mode = edit ? 'editing' : unfinished
  const { denyRef, editRef } = useReturnFocus(mode)
  const isHeld = approval.severity === 'high'
  const isMissing = approval.hasPreview === true && !preview
  const close = (): void => {
    setDenying(false)
    onDraft({ ...draft, isEditing: false })
  }
  const offers = { offers: approval.offers, args: props.args, chosen: draft.offer }
  const choose = (offer: string | undefined): void => onDraft({ ...draft, offer })
  const deny = (reason: string | undefined): void =>
    onDecide({
      approved: false,
      ...(reason !== undefined && { reason }),
      ...nameOffer(approval, draft, 'deny'),
    })
  const shared = { onKeyDown: closeOnEscape(close), onClose: close }
  if (edit)
    return (
      <ArgumentsForm
        {...shared}
        fields={edit.fields}
        changed={edit.changed}
        labels={{ submit: nameEdit(edit, props, labels) }}
        blocked={findBlock(edit, labels)}
        onChange={(fields) => onDraft({ ...draft, fields })}
        isHeld={isHeld}
        hidden={hidden}
        onSubmit={(args) => onDecide({ approved: true, args, ...nameSeen(edit) })}
      />
    )
  return (
    <div className="adk-approval-form" hidden={hidden}>
      {mode === 'denying' ? (
        <DenyForm
          {...shared}
          reason={draft.reason}
          onChange={(reason) => onDraft({ ...draft, reason })}
          onDeny={deny}
        >
          <GrantOffers {...offers} effect="deny" onChoose={choose} />
        </DenyForm>
      ) : (
        <Choices
          offers={<GrantOffers {...offers} effect="approve" onChoose={choose} />}
          action={preview?.action}
          isHeld={isHeld}
          blocked={isMissing ? labels.approval.previewMissing : preview?.blocked}
          denyRef={denyRef}
          editRef={editRef}
          onApprove={() => onDecide({ approved: true, ...nameOffer(approval, draft, 'approve') })}
          onDeny={() => setDenying(true)}
          onEdit={editable ? () => onDraft({ ...draft, isEditing: true }) : undefined}
        />
      )}
    </div>
  )
}

/** Returns the grant that a decision chooses. */
function nameOffer(
  { offers = [] }: ApprovalFormProps['approval'],
  { offer }: Draft,
  effect: 'approve' | 'deny',
): Pick<Decision, 'offer'> {
  const isOffered = offers.some((each) => each.id === offer && each.effect === effect)
  return offer !== undefined && isOffered ? { offer } : {}
}

/** Returns why the server refused the last decision, until the person changes what they have typed. */
export function useRefusalOfDraft(
  refusal: ServerError | undefined,
  draft: Draft,
): ServerError | undefined {
  const [refused, setRefused] = useState({ refusal, draft })
  if (refused.refusal !== refusal) setRefused({ refusal, draft })
  const isCorrected = draft.fields !== refused.draft.fields
  return draft.isEditing && isCorrected ? undefined : refusal
}

/** Returns the label of the button that approves an edited call: what the server says that it would do. */
function nameEdit(
  { check }: Edit,
  { description, preview }: Pick<ApprovalFormProps, 'description' | 'preview'>,
  { approval }: AdkLabels,
): string {
  if (check.state !== 'checked') return approval.approveEdited
  if (description !== undefined) return approval.approveCall(description)
  const { action } = preview ?? {}
  return action === undefined ? approval.approveEdited : approval.approveAction(toLiteral(action))
}

/** Returns the preview of the edited call, as a decision names it. */
function nameSeen({ check }: Edit): Pick<Decision, 'preview'> {
  const digest = check.state === 'checked' ? check.edit.preview?.digest : undefined
  return digest === undefined ? {} : { preview: digest }
}

/** Returns why an edited call cannot be approved now. */
function findBlock({ check }: Edit, { approval }: AdkLabels): string | undefined {
  switch (check.state) {
    case 'none':
    case 'invalid':
      return undefined
    case 'checking':
      return approval.checkingEdit
    case 'refused':
      return approval.refusals[check.error.code] ?? toLiteral(check.error.message)
    case 'checked': {
      const { hasPreview, preview } = check.edit
      return hasPreview === true && !preview ? approval.previewMissing : preview?.blocked
    }
  }
}

/** Returns a key handler for the fields of a form that closes it. Escape also closes the candidate window of an input method. */
export function closeOnEscape(close: () => void): (event: ReactKeyboardEvent) => void {
  return (event) => {
    ignoreHeldEnter(event)
    if (event.key !== 'Escape' || isComposing(event)) return
    event.stopPropagation()
    close()
  }
}

interface ChoicesProps {
  /** The grants that the person can choose. */
  readonly offers: ReactNode
  /** What the person approves, for the label of the button. */
  readonly action: string | undefined
  /** Whether the person has to hold the approve button. */
  readonly isHeld: boolean
  /** Why the call cannot be approved now. */
  readonly blocked: string | undefined
  readonly denyRef: RefObject<HTMLButtonElement | null>
  readonly editRef: RefObject<HTMLButtonElement | null>
  readonly onApprove: () => void
  readonly onDeny: () => void
  readonly onEdit: (() => void) | undefined
}

function Choices(props: ChoicesProps) {
  const { action, isHeld, blocked, denyRef, editRef, onApprove, onDeny, onEdit } = props
  const { approval } = useAdkLabels()
  const id = useId()
  const { handlers, isMisplaced } = useMisplacedClicks()
  const click = (event: ReactMouseEvent): void => {
    // The second click of a double click must not decide the next approval.
    const isMeant = event.detail <= 1 && !isMisplaced(event)
    if (isMeant && blocked === undefined) onApprove()
  }
  const label = action === undefined ? approval.approve : approval.approveAction(toLiteral(action))
  return (
    <>
      {blocked !== undefined && (
        <LiteralText in="p" id={id} className="adk-blocked" text={blocked} />
      )}
      {props.offers}
      <div className="adk-actions">
        {isHeld && blocked === undefined ? (
          <HoldButton label={label} shortcut="a" onHeld={onApprove} />
        ) : (
          <button
            type="button"
            className="adk-button adk-primary"
            aria-keyshortcuts="a"
            // `disabled` would hide the reason from people who use the keyboard.
            aria-disabled={blocked !== undefined}
            aria-describedby={blocked === undefined ? undefined : id}
            onKeyDown={ignoreHeldEnter}
            {...handlers}
            onClick={click}
          >
            {label}
          </button>
        )}
        <OutlinedButton aria-keyshortcuts="d" ref={denyRef} onClick={onDeny}>
          {approval.deny}
        </OutlinedButton>
        {onEdit && (
          <OutlinedButton aria-keyshortcuts="e" ref={editRef} onClick={onEdit}>
            {approval.edit}
          </OutlinedButton>
        )}
      </div>
    </>
  )
}

/** Shows what a person had typed when the approval ended without them. */
export function UnsentDraft({ draft, args }: { readonly draft: Draft; readonly args: Arguments }) {
  const { approval, locale } = useAdkLabels()
  const read = draft.fields && readFields(draft.fields, locale)
  const typed = draft.fields
    ? Object.fromEntries(draft.fields.map(({ name, value }) => [name, value]))
    : undefined
  const edited = read?.state === 'valid' ? read.args : typed
  if (!edited && draft.reason === '') return null
  return (
    <div className="adk-unsent">
      <p>{approval.unsent}</p>
      {edited && <ArgumentsTable args={args} edited={edited} isUnsent />}
      {draft.reason !== '' && <LiteralText text={draft.reason} />}
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
  /** The label of the submit button. Default: to deny a call. */
  readonly label?: string
  readonly reason: string
  readonly onChange: (reason: string) => void
  readonly onKeyDown: (event: ReactKeyboardEvent) => void
  readonly onClose: () => void
  readonly onDeny: (reason: string | undefined) => void
  /** Shown above the buttons. */
  readonly children?: ReactNode
}

/** Denies a call. The model receives the reason, if there is one. */
export function DenyForm(props: DenyFormProps) {
  const { reason, onChange, onKeyDown, onClose, onDeny } = props
  const { approval } = useAdkLabels()
  const { label = approval.confirmDeny } = props
  const inputRef = useRef<HTMLInputElement>(null)
  const id = useId()
  useEffect(() => inputRef.current?.focus(), [])
  return (
    <form
      className="adk-deny"
      ref={returnFocus}
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
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={onKeyDown}
      />
      {props.children}
      <FormActions label={label} danger onClose={onClose} />
    </form>
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

/** Whether a key belongs to an input, an input method, or a shortcut of the browser. */
export function isHandledElsewhere(event: KeyboardEvent): boolean {
  if (event.altKey || event.ctrlKey || event.metaKey) return true
  return event.repeat || event.isComposing || isField(event.target)
}

function isField(target: EventTarget | null): boolean {
  return target instanceof Element && target.matches('input, textarea, select, [contenteditable]')
}
