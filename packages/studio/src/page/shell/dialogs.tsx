import { type ReactNode, useEffect, useRef } from 'react'
import { X } from 'lucide-react'

import { IconButton } from '../icon-button.tsx'
import { useLabels } from '../i18n/language.tsx'
import { describeShortcut, SHORTCUT_NAMES, type ShortcutActions } from './shortcuts.ts'

interface ModalProps {
  readonly open: boolean
  readonly label: string
  readonly className: string
  readonly onClose: () => void
  readonly children: ReactNode
}

/** A native dialog: it traps the focus, closes with Escape, and restores the focus. */
export function Modal({ open, label, className, onClose, children }: ModalProps) {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const dialog = ref.current
    if (!dialog || dialog.open === open) return
    if (open) dialog.showModal()
    else dialog.close()
  }, [open])
  return (
    // The Escape key does the same as a click outside the dialog.
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-noninteractive-element-interactions
    <dialog
      ref={ref}
      className={className}
      aria-label={label}
      onClose={(event) => {
        // In React, the event of a nested dialog bubbles.
        if (event.target === event.currentTarget) onClose()
      }}
      onClick={(event) => {
        if (event.target === event.currentTarget) event.currentTarget.close()
      }}
    >
      {open && <div className="modal-content">{children}</div>}
    </dialog>
  )
}

interface ShortcutsDialogProps {
  readonly open: boolean
  /** The shortcuts that the page has. */
  readonly actions: ShortcutActions
  readonly onClose: () => void
}

const OTHERS = [
  ['send', 'Enter'],
  ['newLine', 'Shift+Enter'],
  ['close', 'Esc'],
] as const

/** Lists all keyboard shortcuts. */
export function ShortcutsDialog({ open, actions, onClose }: ShortcutsDialogProps) {
  const { shortcuts, close } = useLabels().shell
  const names = SHORTCUT_NAMES.filter((name) => actions[name] !== undefined)
  const rows = [...names.map((name) => [name, describeShortcut(name)] as const), ...OTHERS]
  return (
    <Modal open={open} label={shortcuts.title} className="dialog shortcuts" onClose={onClose}>
      <header className="dialog-header">
        <h2>{shortcuts.title}</h2>
        <IconButton icon={X} label={close} onClick={onClose} />
      </header>
      <dl>
        {rows.map(([name, keys]) => (
          <div key={name}>
            <dt>{shortcuts.names[name]}</dt>
            <dd>
              <kbd>{keys}</kbd>
            </dd>
          </div>
        ))}
      </dl>
    </Modal>
  )
}
