import type { ComponentProps, KeyboardEvent, MouseEvent, PointerEvent } from 'react'
import { useEffect, useId, useRef, useState } from 'react'

import { useAdkLabels } from '../provider.tsx'

/** A button with a frame. */
export function OutlinedButton({ className = '', ...props }: ComponentProps<'button'>) {
  return (
    <button type="button" className={`adk-button adk-outlined ${className}`.trim()} {...props} />
  )
}

/**
 * Ignores the repetitions of a held Enter key in the field of a form or on a button. The key was pressed for what had the focus
 * before: a person who holds it on the button that opens a form must not send the form. In a text of several lines it adds lines.
 */
export function ignoreHeldEnter(event: KeyboardEvent): void {
  const isText = event.target instanceof Element && event.target.matches('textarea')
  if (event.key === 'Enter' && event.repeat && !isText) event.preventDefault()
}

/** A click so soon after a button has come under the pointer, in ms, was meant for what was there before. */
const SETTLE_MS = 500

/**
 * Recognizes clicks on a button that has come under a resting mouse, for example because a new card has moved the others. The browser then
 * reports that the pointer has entered the button, without a movement. On a touch screen, every tap looks like that.
 */
export function useMisplacedClicks() {
  const cameAt = useRef<number>(undefined)
  return {
    handlers: {
      onPointerEnter: ({ pointerType }: PointerEvent): void => {
        cameAt.current = pointerType === 'mouse' ? Date.now() : undefined
      },
      onPointerMove: (): void => {
        cameAt.current = undefined
      },
    },
    /** `detail` is 0 if a key or a screen reader clicks. */
    isMisplaced: ({ detail }: MouseEvent): boolean =>
      detail > 0 && cameAt.current !== undefined && Date.now() - cameAt.current < SETTLE_MS,
  }
}

interface FormActionsProps {
  /** The label of the submit button. */
  readonly label: string
  readonly danger?: boolean
  /** The id of the text that says why the form cannot be submitted. The button stays reachable. */
  readonly blockedBy?: string | undefined
  /** Called when the submit button was held. Without it, a click submits the form. */
  readonly onHeld?: (() => void) | undefined
  readonly onClose: () => void
  /** The label of the second button. Default: to go back. */
  readonly closeLabel?: string | undefined
}

/** The submit button and the back button of a form. */
export function FormActions(props: FormActionsProps) {
  const { label, danger = false, blockedBy, onHeld, onClose, closeLabel } = props
  const { back } = useAdkLabels().approval
  return (
    <div className="adk-actions">
      {onHeld && blockedBy === undefined ? (
        <HoldButton label={label} onHeld={onHeld} />
      ) : (
        <button
          type="submit"
          aria-disabled={blockedBy !== undefined}
          aria-describedby={blockedBy}
          className={danger ? 'adk-button adk-primary adk-danger' : 'adk-button adk-primary'}
        >
          {label}
        </button>
      )}
      <button
        type="button"
        // A decision of its own, and not the way back.
        className={closeLabel === undefined ? 'adk-button adk-quiet' : 'adk-button adk-outlined'}
        onClick={onClose}
      >
        {closeLabel ?? back}
      </button>
    </div>
  )
}

/** How long a person holds the button, in ms. */
const HOLD_MS = 800
/** How long a first press waits for the second one, in ms. */
const ARMED_MS = 5_000
/** A second press counts only after this time, in ms, so that a double click does not approve. */
const DOUBLE_CLICK_MS = 500

interface HoldButtonProps {
  readonly label: string
  readonly disabled?: boolean
  readonly shortcut?: string
  readonly onHeld: () => void
}

/** `early`: the second press came too soon after the first one. */
type Press = 'none' | 'held' | 'armed' | 'early'

/** Whether a key presses a button. */
function isPress(event: KeyboardEvent): boolean {
  if (event.key !== 'Enter' && event.key !== ' ') return false
  // The browser would click at once, and again while the key repeats.
  event.preventDefault()
  return true
}

/**
 * A button that acts when it is held for 0.8 s, by pointer or by key. People who cannot hold a button press it twice
 * instead; a screen reader does the same.
 */
export function HoldButton({ label, disabled = false, shortcut, onHeld }: HoldButtonProps) {
  const { approval } = useAdkLabels()
  const id = useId()
  const [press, setPress] = useState<Press>('none')
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  /** When the first press ended, if a second one may follow. */
  const armedAt = useRef<number>(undefined)
  /** Whether the pointer's press has acted, so that the click at its end means nothing. */
  const hasActed = useRef(false)
  useEffect(() => () => clearTimeout(timer.current), [])

  const after = (ms: number, run: () => void): void => {
    clearTimeout(timer.current)
    timer.current = setTimeout(run, ms)
  }
  const disarm = (): void => {
    clearTimeout(timer.current)
    armedAt.current = undefined
    setPress('none')
  }
  const act = (): void => {
    disarm()
    onHeld()
  }
  const start = (onAct = (): unknown => undefined): void => {
    if (disabled) return
    setPress('held')
    after(HOLD_MS, () => {
      onAct()
      act()
    })
  }
  /** Ends a press that was too short to hold: the first one arms the button, the second one acts. */
  const release = (): void => {
    if (disabled) return
    const { current } = armedAt
    if (current !== undefined && Date.now() - current >= DOUBLE_CLICK_MS) return act()
    armedAt.current = current ?? Date.now()
    setPress(current === undefined ? 'armed' : 'early')
    after(ARMED_MS, disarm)
  }
  const isPressed = press === 'held'
  const prompts = {
    none: undefined,
    held: undefined,
    armed: approval.pressAgain,
    early: approval.pressedEarly,
  }
  const next = prompts[press]
  const onPointerDown = ({ button, pointerId, currentTarget }: PointerEvent): void => {
    if (button !== 0) return
    hasActed.current = false
    // A finger is captured by what it touches. Without that, it leaves the button as a mouse does.
    if (currentTarget.hasPointerCapture(pointerId)) currentTarget.releasePointerCapture(pointerId)
    start(() => (hasActed.current = true))
  }
  // A finger also leaves the button when it is lifted, before the click.
  const onPointerLeave = ({ buttons }: PointerEvent): void => {
    if (isPressed && buttons > 0) disarm()
  }
  return (
    <>
      <button
        type="button"
        className="adk-button adk-primary adk-hold"
        data-press={press}
        disabled={disabled}
        aria-keyshortcuts={shortcut}
        aria-describedby={disabled ? undefined : id}
        onPointerDown={onPointerDown}
        onPointerUp={() => isPressed && after(ARMED_MS, disarm)}
        onPointerLeave={onPointerLeave}
        onPointerCancel={disarm}
        onContextMenu={(event) => isPressed && event.preventDefault()}
        onKeyDown={(event) => isPress(event) && !event.repeat && start()}
        onKeyUp={(event) => isPress(event) && isPressed && release()}
        onBlur={() => isPressed && disarm()}
        // Screen readers click, with or without the events of a pointer.
        onClick={() => (hasActed.current ? (hasActed.current = false) : release())}
      >
        {next ?? label}
      </button>
      {!disabled && (
        <span id={id} className="adk-hold-hint">
          {approval.holdHint}
        </span>
      )}
      <span className="adk-hidden" role="status">
        {next}
      </span>
    </>
  )
}
