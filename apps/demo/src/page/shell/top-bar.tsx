import { PanelLeft, PanelRight, SquarePen } from 'lucide-react'
import type { ReactNode } from 'react'

import { useLabels } from '../i18n/language.tsx'
import type { PanelState } from './use-panel.ts'

export interface TopBarProps {
  readonly title: string
  readonly sidebar: PanelState
  readonly inspector: PanelState
  readonly onNewChat: () => void
  /** The choice between writing and talking. */
  readonly mode: ReactNode
  /** The state of the connection. */
  readonly connection: ReactNode
  /** The buttons for music, inbox and settings. */
  readonly children: ReactNode
}

/** The bar above the conversation: title, mode, connection and buttons. */
export function TopBar(props: TopBarProps) {
  const { title, sidebar, inspector, onNewChat, mode, connection, children } = props
  const labels = useLabels()
  const { chats, inspector: inspectorLabels } = labels.shell
  const showsSidebar = sidebar.docked && sidebar.open
  const inspectorLabel = inspector.open ? inspectorLabels.hide : inspectorLabels.show
  return (
    <header className="top-bar">
      <div className="top-bar-start">
        {!showsSidebar && (
          <>
            <button
              type="button"
              className="icon-button"
              aria-label={chats.show}
              title={chats.show}
              onClick={() => sidebar.setOpen(true)}
            >
              <PanelLeft aria-hidden="true" />
            </button>
            <button
              type="button"
              className="icon-button"
              aria-label={labels.newChat}
              title={labels.newChat}
              onClick={onNewChat}
            >
              <SquarePen aria-hidden="true" />
            </button>
          </>
        )}
        <h1 title={title}>{title}</h1>
      </div>
      {mode}
      <div className="top-bar-end">
        {connection}
        {children}
        <button
          type="button"
          className="icon-button"
          aria-label={inspectorLabel}
          title={inspectorLabel}
          aria-expanded={inspector.open}
          onClick={() => inspector.setOpen(!inspector.open)}
        >
          <PanelRight aria-hidden="true" />
        </button>
      </div>
    </header>
  )
}
