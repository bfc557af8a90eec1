import { ObservableValue } from '../observable-value.ts'

/** The place of the conversation that the inspector points at. */
interface Inspection {
  readonly place: ChatPlace
  /** Whether the focus moves to the entry. */
  readonly focus: boolean
}

const current = new ObservableValue<Inspection | undefined>(undefined)

/** Connects the conversation to the inspector: the focused message or card is marked there. */
export const inspection = {
  read: current.read,
  subscribe: current.subscribe,
  /** Marks the entry of a place that was clicked or focused. */
  pointAt: (target: EventTarget | null): void => {
    const place = target instanceof Element ? findPlace(target) : undefined
    if (place) current.set({ place, focus: false })
  },
  /** Moves the focus to the entry of the focused place, or of the newest message. */
  focusPlace: (): void => {
    const messages = document.querySelectorAll('[data-message]')
    const here = document.activeElement && findPlace(document.activeElement)
    const newest = messages.item(messages.length - 1)
    const place = here ?? current.read()?.place ?? (newest ? findPlace(newest) : undefined)
    if (place) current.set({ place, focus: true })
  },
  /** The focus has moved. */
  settle: (): void => {
    const inspected = current.read()
    if (inspected?.focus === true) current.set({ ...inspected, focus: false })
  },
}

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
function findPlace(element: Element): ChatPlace | undefined {
  const messageId = element.closest('[data-message]')?.getAttribute('data-message')
  if (messageId === null || messageId === undefined) return undefined
  const toolCallId =
    element.closest('[data-tool-call]')?.getAttribute('data-tool-call') ?? undefined
  return { messageId, toolCallId }
}

function findElement(attribute: string, value: string): HTMLElement | null {
  return document.querySelector<HTMLElement>(`[${attribute}="${CSS.escape(value)}"]`)
}

/** Whether the conversation receives a reply. The inspector reads it. */
export const isReplying = new ObservableValue(false)
