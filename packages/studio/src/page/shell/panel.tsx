import { type ReactNode, useCallback, useState, useSyncExternalStore } from 'react'

import { Modal } from './dialogs.tsx'
import { handOverFocus } from './hand-over-focus.ts'

// The buttons of the top bar that show the panels.
const toChatsButton = handOverFocus('[data-shows=chats]')
const toInspectorButton = handOverFocus('[data-shows=inspector]')

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
    <nav className="panel panel-start" aria-label={label} ref={toChatsButton}>
      {children}
    </nav>
  ) : (
    <aside className="panel panel-end" aria-label={label} ref={toInspectorButton}>
      {children}
    </aside>
  )
}

/** A panel next to the conversation: docked if there is room, otherwise a drawer. */
export interface PanelState {
  readonly docked: boolean
  readonly open: boolean
  readonly setOpen: (open: boolean) => void
  /** Closes the panel if it is a drawer. */
  readonly closeDrawer: () => void
}

/** A docked panel keeps its stored state. A drawer is initially closed. */
export function usePanel(
  roomFor: string,
  [dockedOpen, setDockedOpen]: readonly [boolean, (open: boolean) => void],
): PanelState {
  const docked = useMedia(roomFor)
  const [drawerOpen, setDrawerOpen] = useState(false)
  return {
    docked,
    open: docked ? dockedOpen : drawerOpen,
    setOpen: docked ? setDockedOpen : setDrawerOpen,
    closeDrawer: useCallback(() => setDrawerOpen(false), []),
  }
}

/** Returns whether a media query matches. */
function useMedia(query: string): boolean {
  const subscribe = useCallback(
    (listener: () => void) => {
      const media = window.matchMedia(query)
      media.addEventListener('change', listener)
      return () => media.removeEventListener('change', listener)
    },
    [query],
  )
  return useSyncExternalStore(subscribe, () => window.matchMedia(query).matches)
}
