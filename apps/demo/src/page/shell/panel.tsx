import type { ReactNode } from 'react'

import { Modal } from './modal.tsx'
import type { PanelState } from './use-panel.ts'

interface PanelProps {
  readonly panel: PanelState
  readonly side: 'start' | 'end'
  readonly label: string
  readonly children: ReactNode
}

/** A column next to the conversation, or a drawer over it. */
export function Panel({ panel, side, label, children }: PanelProps) {
  const { docked, open, setOpen } = panel
  if (!docked) {
    return (
      <Modal
        open={open}
        label={label}
        className={`drawer drawer-${side}`}
        onClose={() => setOpen(false)}
      >
        {children}
      </Modal>
    )
  }
  if (!open) return null
  return side === 'start' ? (
    <nav className="panel panel-start" aria-label={label}>
      {children}
    </nav>
  ) : (
    <aside className="panel panel-end" aria-label={label}>
      {children}
    </aside>
  )
}
