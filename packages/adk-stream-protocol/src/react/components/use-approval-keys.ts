import { type RefObject, useEffect, useRef } from 'react'

/**
 * Keys of a card, while the focus is within it: `a` goes to the button that approves, `d` and `e` open their forms. None of them
 * decides: what moves money takes a second, deliberate key.
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
  if (!/^[ade]$/.test(name) || isMeantOtherwise(event)) return
  const button = card.querySelector<HTMLButtonElement>(`[aria-keyshortcuts="${name}"]`)
  if (!button || button.closest('[hidden]')) return
  event.preventDefault()
  // Keys of the page are not meant.
  event.stopPropagation()
  if (name === 'a') button.focus()
  else button.click()
}

function isMeantOtherwise(event: KeyboardEvent): boolean {
  if (event.altKey || event.ctrlKey || event.metaKey) return true
  return event.repeat || event.isComposing || isField(event.target)
}

function isField(target: EventTarget | null): boolean {
  return target instanceof Element && target.matches('input, textarea, select, [contenteditable]')
}
