import { useCallback, useState } from 'react'

import { useMedia } from './use-media.ts'

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
