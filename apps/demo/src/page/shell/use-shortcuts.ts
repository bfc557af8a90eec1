import { useEffect, useEffectEvent } from 'react'

import { matchShortcut, type ShortcutName } from './shortcuts.ts'

/** Runs the action of a keyboard shortcut, wherever the focus is, unless a dialog is open. */
export function useShortcuts(actions: Readonly<Record<ShortcutName, () => void>>): void {
  const press = useEffectEvent((event: KeyboardEvent) => {
    const name = matchShortcut(event, isWriting(event.target))
    if (!name || document.querySelector('dialog:modal')) return
    event.preventDefault()
    actions[name]()
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
