import { PanelLeft, PanelRight, SquarePen } from 'lucide-react'
import { type ReactNode, useSyncExternalStore } from 'react'
import { ConnectionBadge, useConnection } from 'adk-stream-protocol/react'

import { IconButton } from '../icon-button.tsx'
import { OpenChat } from '../conversation/open-chat.tsx'
import { Replay } from '../conversation/replay.tsx'
import { ProblemBanner } from '../developer/problem-banner.tsx'
import { ApprovalsPage } from '../inbox/approvals-page.tsx'
import { Inbox } from '../inbox/inbox.tsx'
import { handOverFocus } from './hand-over-focus.ts'
import { ModeSwitch } from './mode-switch.tsx'
import { SettingsMenu } from './settings-menu.tsx'
import type { Workspace } from './use-workspace.ts'
import { useLabels } from '../i18n/language.tsx'
import type { PanelState } from './panel.tsx'
import { useMode } from '../settings.ts'
import { SlotContent } from '../plugin/slot-content.tsx'
import { useTransport, lastInstance } from '../wire/wire.ts'
import { useValue } from '../observable-value.ts'

interface MainAreaProps extends Pick<TopBarProps, 'title' | 'sidebar' | 'inspector'> {
  readonly workspace: Workspace
  /** Whether the page of approvals is shown instead of the conversation. */
  readonly isApprovals: boolean
  /** A recording that is shown instead of the conversation. */
  readonly recording: string | undefined
  readonly onEndReplay: () => void
  readonly onShowShortcuts: () => void
}

/** The top bar with the conversation or a replayed recording below it. */
export function MainArea({
  workspace,
  isApprovals,
  recording,
  onEndReplay,
  onShowShortcuts,
  ...bar
}: MainAreaProps) {
  const { location, inbox, list, startNew, open, onStarted, onSent } = workspace
  return (
    <div className="main-area">
      <TopBar
        {...bar}
        onNewChat={startNew}
        mode={!isApprovals && recording === undefined && <ModeSwitch />}
        connection={
          <>
            <InstanceMark />
            <Connection />
          </>
        }
      >
        <SlotContent name="top-bar" />
        <Inbox inbox={inbox} chats={list.chats} onOpenChat={open} />
        <SettingsMenu onShowShortcuts={onShowShortcuts} />
      </TopBar>
      <ProblemBanner />
      {isApprovals && <ApprovalsPage inbox={inbox} chats={list.chats} onOpenChat={open} />}
      {recording !== undefined && <Replay recording={recording} onClose={onEndReplay} />}
      <OpenChat
        key={location.id}
        location={location}
        hidden={recording !== undefined || isApprovals}
        onNewChat={startNew}
        {...{ onStarted, onSent }}
      />
    </div>
  )
}

const toChatsPanel = handOverFocus('.panel-start button')

interface TopBarProps {
  readonly title: string
  readonly sidebar: PanelState
  /** Undefined if the page has no inspector. */
  readonly inspector: PanelState | undefined
  readonly onNewChat: () => void
  /** The choice between writing and talking. */
  readonly mode: ReactNode
  /** The state of the connection. */
  readonly connection: ReactNode
  /** The buttons of the plug-in, of the inbox and of the settings. */
  readonly children: ReactNode
}

/** The bar above the conversation: title, mode, connection and buttons. */
function TopBar(props: TopBarProps) {
  const { title, sidebar, inspector, onNewChat, mode, connection, children } = props
  const labels = useLabels()
  const { chats, inspector: inspectorLabels } = labels.shell
  const showsSidebar = sidebar.docked && sidebar.open
  return (
    <header className="top-bar">
      <div className="top-bar-start">
        {!showsSidebar && (
          <>
            <IconButton
              icon={PanelLeft}
              label={chats.show}
              data-shows="chats"
              ref={toChatsPanel}
              onClick={() => sidebar.setOpen(true)}
            />
            <IconButton icon={SquarePen} label={labels.newChat} onClick={onNewChat} />
          </>
        )}
        <h1 title={title}>{title}</h1>
      </div>
      {mode}
      <div className="top-bar-end">
        {connection}
        {children}
        {inspector && (
          <IconButton
            icon={PanelRight}
            label={inspector.open ? inspectorLabels.hide : inspectorLabels.show}
            data-shows="inspector"
            aria-expanded={inspector.open}
            onClick={() => inspector.setOpen(!inspector.open)}
          />
        )}
      </div>
    </header>
  )
}

/** Shows that there is a connection. A notice in the conversation says when it is lost. */
function Connection() {
  const [mode] = useMode()
  const connection = useConnection(useTransport(mode))
  const isOnline = useSyncExternalStore(subscribe, () => navigator.onLine)
  const isOpen = connection.state === 'open' || connection.state === 'connecting'
  if (!isOpen || !isOnline) return null
  return (
    // The notice announces a connection that is lost or back.
    <span aria-hidden="true">
      <ConnectionBadge connection={connection} />
    </span>
  )
}

function subscribe(listener: () => void): () => void {
  window.addEventListener('online', listener)
  window.addEventListener('offline', listener)
  return () => {
    window.removeEventListener('online', listener)
    window.removeEventListener('offline', listener)
  }
}

/** Shows which of several server instances responded last. Shows nothing if the server has no name. */
function InstanceMark() {
  const { instance } = useLabels().shell
  const name = useValue(lastInstance)
  return name === undefined ? null : (
    <p className="instance" title={instance.explanation}>
      {instance.name(name)}
    </p>
  )
}
