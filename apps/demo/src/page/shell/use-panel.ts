import { useCallback, useState } from 'react'

import { useMedia } from './use-media.ts'

/** A panel beside the conversation: docked where there is room, else a drawer above it. */
export interface PanelState {
  readonly docked: boolean
  readonly open: boolean
  readonly setOpen: (open: boolean) => void
  /** Closes it if it lies above the conversation. */
  readonly leaveDrawer: () => void
}

/** A docked panel stays as the reader left it; a drawer begins closed. */
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
    leaveDrawer: useCallback(() => setDrawerOpen(false), []),
  }
}
