import { X } from 'lucide-react'

import { useLabels } from '../i18n/language.tsx'
import { Modal } from './modal.tsx'
import { describeShortcut, SHORTCUT_NAMES } from './shortcuts.ts'

interface ShortcutsDialogProps {
  readonly open: boolean
  readonly onClose: () => void
}

const OTHERS = [
  ['send', 'Enter'],
  ['newLine', 'Shift+Enter'],
  ['close', 'Esc'],
] as const

/** Lists all keyboard shortcuts. */
export function ShortcutsDialog({ open, onClose }: ShortcutsDialogProps) {
  const { shortcuts, close } = useLabels().shell
  const rows = [...SHORTCUT_NAMES.map((name) => [name, describeShortcut(name)] as const), ...OTHERS]
  return (
    <Modal open={open} label={shortcuts.title} className="dialog shortcuts" onClose={onClose}>
      <header className="dialog-header">
        <h2>{shortcuts.title}</h2>
        <button
          type="button"
          className="icon-button"
          aria-label={close}
          title={close}
          onClick={onClose}
        >
          <X aria-hidden="true" />
        </button>
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
