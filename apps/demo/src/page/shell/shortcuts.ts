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
