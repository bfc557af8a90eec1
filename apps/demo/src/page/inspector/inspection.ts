import { type ChatPlace, findPlace } from './show-in-chat.ts'

/** The place of the conversation that the inspector points at. */
export interface Inspection {
  readonly place: ChatPlace
  /** Whether the focus moves to the entry. */
  readonly focus: boolean
}

const listeners = new Set<() => void>()
let current: Inspection | undefined

function point(next: Inspection): void {
  current = next
  for (const listener of listeners) listener()
}

/** Connects the conversation to the inspector: the focused message or card is marked there. */
export const inspection = {
  read: (): Inspection | undefined => current,
  subscribe: (listener: () => void): (() => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  },
  /** Marks the entry of a place that was clicked or focused. */
  pointAt: (target: EventTarget | null): void => {
    const place = target instanceof Element ? findPlace(target) : undefined
    if (place) point({ place, focus: false })
  },
  /** Moves the focus to the entry of the focused place, or of the newest message. */
  focusPlace: (): void => {
    const messages = document.querySelectorAll('[data-message]')
    const here = document.activeElement && findPlace(document.activeElement)
    const newest = messages.item(messages.length - 1)
    const place = here ?? current?.place ?? (newest ? findPlace(newest) : undefined)
    if (place) point({ place, focus: true })
  },
  /** The focus has moved. */
  settle: (): void => {
    if (current?.focus === true) current = { ...current, focus: false }
  },
}
