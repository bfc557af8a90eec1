import { useLayoutEffect, useRef } from 'react'

/**
 * A `ref` for an element that disappears while it can have the focus, such as the button of a notice. Moves the focus before the element
 * is removed, because the browser would move it to the body, from where a person has to start again.
 */
export function returnFocus(element: HTMLElement | null): (() => void) | undefined {
  if (!element) return undefined
  return () => {
    if (element.contains(document.activeElement)) findNext(element)?.focus()
  }
}

/** Returns where the person can continue: in the same card or list, at the button of the voice, in the message input, or in the conversation. */
function findNext(element: HTMLElement): HTMLElement | null | undefined {
  const stage = element.closest('.adk-stage')?.querySelector<HTMLElement>('.adk-stage-main')
  return (
    element.closest<HTMLElement>('.adk-approval, .adk-inbox') ??
    stage ??
    document.querySelector<HTMLElement>(
      hasTouchScreen() ? '.adk-messages' : '.adk-composer-input',
    ) ??
    document.querySelector<HTMLElement>('.adk-messages')
  )
}

/** Whether the focus of an input would open a keyboard on the screen. */
function hasTouchScreen(): boolean {
  return typeof matchMedia === 'function' && matchMedia('(pointer: coarse)').matches
}

/** Moves the focus to the status of a card when its buttons disappear while one of them has the focus. */
export function useFocusStatus(canChoose: boolean) {
  const statusRef = useRef<HTMLParagraphElement>(null)
  useLayoutEffect(() => {
    const status = statusRef.current
    const card = status?.closest('.adk-approval')
    if (!canChoose && card?.contains(document.activeElement)) status?.focus()
  }, [canChoose])
  return statusRef
}
