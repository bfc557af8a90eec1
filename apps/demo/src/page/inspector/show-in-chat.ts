/** What an entry of the timeline is about: a call, or a message. */
export interface ChatPlace {
  readonly toolCallId?: string | undefined
  readonly messageId: string
}

/** Moves the focus to the card of a call, or to the message, in the conversation. Returns false if it is not shown. */
export function showInChat({ toolCallId, messageId }: ChatPlace): boolean {
  const found =
    (toolCallId === undefined ? null : findElement('data-tool-call', toolCallId)) ??
    findElement('data-message', messageId)
  if (!found) return false
  found.scrollIntoView({ block: 'center' })
  // A message is not focusable by itself.
  if (!found.hasAttribute('tabindex')) found.tabIndex = -1
  found.focus({ preventScroll: true })
  found.dataset['pointed'] = ''
  setTimeout(() => delete found.dataset['pointed'], 1_500)
  return true
}

/** Returns the place of the conversation that contains an element. */
export function findPlace(element: Element): ChatPlace | undefined {
  const messageId = element.closest('[data-message]')?.getAttribute('data-message')
  if (messageId === null || messageId === undefined) return undefined
  const toolCallId =
    element.closest('[data-tool-call]')?.getAttribute('data-tool-call') ?? undefined
  return { messageId, toolCallId }
}

function findElement(attribute: string, value: string): HTMLElement | null {
  return document.querySelector<HTMLElement>(`[${attribute}="${CSS.escape(value)}"]`)
}
