import { OpenChat } from '../conversation/open-chat.tsx'
import { Replay } from '../conversation/replay.tsx'
import { Inbox } from '../inbox/inbox.tsx'
import { MusicControl } from '../music/music-control.tsx'
import { Connection } from './connection.tsx'
import { OfflineMark } from './offline-mark.tsx'
import { SettingsMenu } from './settings-menu.tsx'
import { TopBar, type TopBarProps } from './top-bar.tsx'
import type { Desk } from './use-desk.ts'

interface StageProps extends Pick<TopBarProps, 'title' | 'sidebar' | 'inspector'> {
  readonly desk: Desk
  /** What is played in the place of the conversation. */
  readonly recording: string | undefined
  readonly onEndReplay: () => void
  readonly onShowShortcuts: () => void
}

/** The middle of the page: the conversation, or a recorded one, below the bar. */
export function Stage({ desk, recording, onEndReplay, onShowShortcuts, ...bar }: StageProps) {
  const { place, inbox, startNew, open, onBegun, onSaid } = desk
  return (
    <div className="stage">
      <TopBar
        {...bar}
        onNewChat={startNew}
        connection={
          <>
            <OfflineMark />
            <Connection />
          </>
        }
      >
        <MusicControl />
        <Inbox inbox={inbox} onOpenChat={open} />
        <SettingsMenu onShowShortcuts={onShowShortcuts} />
      </TopBar>
      {recording !== undefined && <Replay recording={recording} onClose={onEndReplay} />}
      <OpenChat
        key={place.id}
        location={place}
        hidden={recording !== undefined}
        onNewChat={startNew}
        {...{ onBegun, onSaid }}
      />
    </div>
  )
}
