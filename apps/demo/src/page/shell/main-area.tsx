import { OpenChat } from '../conversation/open-chat.tsx'
import { Replay } from '../conversation/replay.tsx'
import { ApprovalsPage } from '../inbox/approvals-page.tsx'
import { Inbox } from '../inbox/inbox.tsx'
import { MusicControl } from '../music/music-control.tsx'
import { Connection } from './connection.tsx'
import { InstanceMark } from './instance-mark.tsx'
import { ModeSwitch } from './mode-switch.tsx'
import { SettingsMenu } from './settings-menu.tsx'
import { TopBar, type TopBarProps } from './top-bar.tsx'
import type { Workspace } from './use-workspace.ts'

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
        <MusicControl />
        <Inbox inbox={inbox} chats={list.chats} onOpenChat={open} />
        <SettingsMenu onShowShortcuts={onShowShortcuts} />
      </TopBar>
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
