import { type RefObject, useEffect, useRef } from 'react'

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
