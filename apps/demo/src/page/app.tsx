import { useInbox } from 'adk-stream-protocol/react'
import { useCallback, useState } from 'react'

import { ChatList } from './chats/chat-list.tsx'
import { useChats } from './chats/use-chats.ts'
import { focusComposer } from './composer/composer.tsx'
import { OpenChat } from './conversation/open-chat.tsx'
import { Replay } from './conversation/replay.tsx'
import { useTexts } from './i18n/language.tsx'
import { Inbox, toggleInbox } from './inbox/inbox.tsx'
import { MusicControl } from './music/music-control.tsx'
import { useInspectorPanel, useSidebarPanel } from './settings/panels.ts'
import { Connection } from './shell/connection.tsx'
import { focusNextApproval } from './shell/focus-next-approval.ts'
import { InspectorPanel } from './shell/inspector-panel.tsx'
import { OfflineMark } from './shell/offline-mark.tsx'
import { Panel } from './shell/panel.tsx'
import { SettingsMenu } from './shell/settings-menu.tsx'
import { ShortcutsDialog } from './shell/shortcuts-dialog.tsx'
import { TopBar } from './shell/top-bar.tsx'
import { useDocumentTitle } from './shell/use-document-title.ts'
import { usePanel } from './shell/use-panel.ts'
import { usePlace } from './shell/use-place.ts'
import { useShortcuts } from './shell/use-shortcuts.ts'
import { api } from './wire/wire.ts'

const ROOM_FOR_SIDEBAR = '(width >= 60rem)'
const ROOM_FOR_INSPECTOR = '(width >= 80rem)'

/** The page: chats at the start, the conversation in the middle, what lies behind it at the end. */
export function App() {
  const texts = useTexts()
  const { shell } = texts
  const sidebar = usePanel(ROOM_FOR_SIDEBAR, useSidebarPanel())
  const inspector = usePanel(ROOM_FOR_INSPECTOR, useInspectorPanel())
  const [helps, setHelps] = useState(false)
  const [recording, setRecording] = useState<string>()
  const { place, kept, startNew, open, remember } = usePlace(sidebar.leaveDrawer)
  const inbox = useInbox(api)
  const { refresh } = inbox
  const { store, list } = useChats(refresh)
  const title = list.chats.find(({ id }) => id === place.id)?.title || texts.newChat
  const onSaid = useCallback(
    (text: string) => {
      remember(place.id)
      if (kept) store.begin(place.id, text)
    },
    [remember, kept, store, place.id],
  )
  const onProgress = useCallback(() => {
    refresh()
    void store.refresh()
  }, [refresh, store])
  useDocumentTitle(`${title} · ${texts.title}`)
  useShortcuts({
    newChat: startNew,
    composer: focusComposer,
    chats: () => sidebar.setOpen(!sidebar.open),
    inbox: toggleInbox,
    nextApproval: () => void (focusNextApproval() || toggleInbox()),
    inspector: () => inspector.setOpen(!inspector.open),
    help: () => setHelps(true),
  })
  return (
    <div className="shell">
      <Panel panel={sidebar} side="start" label={shell.chats.label}>
        <ChatList
          list={list}
          store={store}
          currentId={place.id}
          onOpen={open}
          onNewChat={startNew}
          onHide={() => sidebar.setOpen(false)}
          onGone={startNew}
        />
      </Panel>
      <div className="stage">
        <TopBar
          title={title}
          sidebar={sidebar}
          inspector={inspector}
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
          <SettingsMenu onShowShortcuts={() => setHelps(true)} />
        </TopBar>
        {recording !== undefined && (
          <Replay recording={recording} onClose={() => setRecording(undefined)} />
        )}
        <OpenChat
          key={place.id}
          location={place}
          hidden={recording !== undefined}
          onNewChat={startNew}
          onSaid={onSaid}
          onProgress={onProgress}
        />
      </div>
      <Panel panel={inspector} side="end" label={shell.inspector.title}>
        <InspectorPanel
          chatId={place.id}
          onReplay={(chosen) => {
            inspector.leaveDrawer()
            setRecording(chosen)
          }}
          onClose={() => inspector.setOpen(false)}
        />
      </Panel>
      <ShortcutsDialog open={helps} onClose={() => setHelps(false)} />
    </div>
  )
}
