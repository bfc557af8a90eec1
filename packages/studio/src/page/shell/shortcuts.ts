import { useEffect, useEffectEvent } from 'react'

export type ShortcutName =
  | 'newChat'
  | 'composer'
  | 'chats'
  | 'inbox'
  | 'nextApproval'
  | 'inspector'
  | 'inspect'
  | 'help'

/**
 * The keys that are pressed with Alt, by key code, because Alt types other characters on a Mac. None of them opens a menu of Firefox
 * on Windows. Plain letters are not used, because people type them.
 */
const CODES: Readonly<Record<ShortcutName, string>> = {
  newChat: 'KeyN',
  composer: 'KeyM',
  chats: 'KeyC',
  inbox: 'KeyI',
  nextApproval: 'KeyA',
  inspector: 'KeyL',
  inspect: 'KeyJ',
  help: 'Slash',
}

export const SHORTCUT_NAMES = Object.keys(CODES) as readonly ShortcutName[]

type Key = Pick<KeyboardEvent, 'code' | 'key' | 'altKey' | 'ctrlKey' | 'metaKey' | 'shiftKey'>

/** Returns the shortcut of a key event. `?` without Alt is a shortcut, except in a text field. */
export function matchShortcut(event: Key, isWriting: boolean): ShortcutName | undefined {
  // AltGr, with which many keyboards type characters, reports Ctrl and Alt.
  if (event.ctrlKey || event.metaKey) return undefined
  if (event.key === '?' && !event.altKey && !isWriting) return 'help'
  if (!event.altKey || event.shiftKey) return undefined
  return SHORTCUT_NAMES.find((name) => CODES[name] === event.code)
}

/** Returns the keys of a shortcut in the notation of this platform. */
export function describeShortcut(name: ShortcutName): string {
  const key = CODES[name] === 'Slash' ? '/' : CODES[name].slice('Key'.length)
  return isApple() ? `⌥${key}` : `Alt+${key}`
}

function isApple(): boolean {
  return /Mac|iPhone|iPad/.test(navigator.userAgent)
}

/** The actions of a page. One without an inspector has none for it. */
export type ShortcutActions = Readonly<Partial<Record<ShortcutName, () => void>>>

/** Runs the action of a keyboard shortcut, wherever the focus is, unless a dialog is open. */
export function useShortcuts(actions: ShortcutActions): void {
  const press = useEffectEvent((event: KeyboardEvent) => {
    const name = matchShortcut(event, isTextField(event.target))
    const action = name && actions[name]
    if (!action || document.querySelector('dialog:modal')) return
    event.preventDefault()
    action()
  })
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => press(event)
    document.addEventListener('keydown', onKeyDown)
    return () => document.removeEventListener('keydown', onKeyDown)
  }, [])
}

function isTextField(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('textarea, input:not([type=radio])')
}

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
