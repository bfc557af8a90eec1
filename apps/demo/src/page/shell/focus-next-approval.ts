/** A card in the conversation that waits for a decision. */
const WAITING = '.adk-approval[data-state="approval-requested"]'

/** Goes to the next card that waits, around the end to the first; `false` when none does. */
export function focusNextApproval(): boolean {
  const cards = [...document.querySelectorAll<HTMLElement>(WAITING)]
  const current = cards.findIndex((card) => card.contains(document.activeElement))
  const next = cards[(current + 1) % cards.length]
  if (!next) return false
  next.scrollIntoView({ block: 'center' })
  next.querySelector<HTMLElement>('[aria-keyshortcuts="a"]')?.focus({ preventScroll: true })
  return true
}
