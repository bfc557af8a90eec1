export type ShortcutName =
  | 'newChat'
  | 'composer'
  | 'chats'
  | 'inbox'
  | 'nextApproval'
  | 'inspector'
  | 'help'

/**
 * The keys that go with Alt, by their place on the keyboard: on a Mac, Alt makes other characters of them. None of them opens a
 * menu of Firefox on Windows, and none of them is a bare letter: those are for writing.
 */
const CODES: Readonly<Record<ShortcutName, string>> = {
  newChat: 'KeyN',
  composer: 'KeyM',
  chats: 'KeyC',
  inbox: 'KeyI',
  nextApproval: 'KeyA',
  inspector: 'KeyL',
  help: 'Slash',
}

export const SHORTCUT_NAMES = Object.keys(CODES) as readonly ShortcutName[]

type Key = Pick<KeyboardEvent, 'code' | 'key' | 'altKey' | 'ctrlKey' | 'metaKey' | 'shiftKey'>

/** Which shortcut a key is. A bare `?` is one too, except where it is written. */
export function matchShortcut(event: Key, isWriting: boolean): ShortcutName | undefined {
  // AltGr, with which many keyboards write, reports Ctrl and Alt.
  if (event.ctrlKey || event.metaKey) return undefined
  if (event.key === '?' && !event.altKey && !isWriting) return 'help'
  if (!event.altKey || event.shiftKey) return undefined
  return SHORTCUT_NAMES.find((name) => CODES[name] === event.code)
}

/** The keys of a shortcut as they are written on this machine. */
export function describeShortcut(name: ShortcutName): string {
  const key = CODES[name] === 'Slash' ? '/' : CODES[name].slice('Key'.length)
  return isApple() ? `⌥${key}` : `Alt+${key}`
}

function isApple(): boolean {
  return /Mac|iPhone|iPad/.test(navigator.userAgent)
}
