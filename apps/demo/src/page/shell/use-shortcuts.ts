import { useEffect, useEffectEvent } from 'react'

import { matchShortcut, type ShortcutName } from './shortcuts.ts'

/** Does what shortcuts are for, wherever the focus is; but not behind an open dialog. */
export function useShortcuts(descriptions: Readonly<Record<ShortcutName, () => void>>): void {
  const press = useEffectEvent((event: KeyboardEvent) => {
    const name = matchShortcut(event, isWriting(event.target))
    if (!name || document.querySelector('dialog:modal')) return
    event.preventDefault()
    descriptions[name]()
  })
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => press(event)
    document.addEventListener('keydown', onKeyDown)
    return () => document.removeEventListener('keydown', onKeyDown)
  }, [])
}

function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('textarea, input:not([type=radio])')
}
