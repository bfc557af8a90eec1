/** A pending approval card in the conversation. */
const WAITING = '.adk-approval[data-state="approval-requested"]'

/** Moves the focus to the next pending card, and from the last to the first. Returns false if there is none. */
export function focusNextApproval(): boolean {
  const cards = [...document.querySelectorAll<HTMLElement>(WAITING)]
  const current = cards.findIndex((card) => card.contains(document.activeElement))
  const next = cards[(current + 1) % cards.length]
  if (!next) return false
  next.scrollIntoView({ block: 'center' })
  const button = next.querySelector<HTMLElement>('[aria-keyshortcuts="a"]')
  button?.focus({ preventScroll: true })
  // On a low screen, the middle of the card may leave no room for its buttons.
  button?.scrollIntoView({ block: 'nearest' })
  return true
}
