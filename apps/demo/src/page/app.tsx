import { useMemo, useState } from 'react'

import { ChatList } from './chats/chat-list.tsx'
import type { ChatsStore } from './chats/chats-store.ts'
import { useChats } from './chats/use-chats.ts'
import { Inbox, toggleInbox } from './components/inbox.tsx'
import { MusicControl } from './components/music-control.tsx'
import { OpenChat } from './components/open-chat.tsx'
import { focusComposer } from './composer/composer.tsx'
import { type InboxState, useInbox } from './hooks/use-inbox.ts'
import { usePlace } from './hooks/use-place.ts'
import { useTexts } from './i18n/language.tsx'
import { useInspectorPanel, useSidebarPanel } from './settings/panels.ts'
import { focusNextApproval } from './shell/focus-next-approval.ts'
import { Inspector } from './shell/inspector.tsx'
import { OfflineMark } from './shell/offline-mark.tsx'
import { Panel } from './shell/panel.tsx'
import { SettingsMenu } from './shell/settings-menu.tsx'
import { ShortcutsDialog } from './shell/shortcuts-dialog.tsx'
import { TopBar } from './shell/top-bar.tsx'
import { useDocumentTitle } from './shell/use-document-title.ts'
import { usePanel } from './shell/use-panel.ts'
import { useShortcuts } from './shell/use-shortcuts.ts'

const ROOM_FOR_SIDEBAR = '(width >= 60rem)'
const ROOM_FOR_INSPECTOR = '(width >= 80rem)'

/** The page: chats at the start, the conversation in the middle, what lies behind it at the end. */
export function App() {
  const texts = useTexts()
  const { shell } = texts
  const sidebar = usePanel(ROOM_FOR_SIDEBAR, useSidebarPanel())
  const inspector = usePanel(ROOM_FOR_INSPECTOR, useInspectorPanel())
  const [helps, setHelps] = useState(false)
  const { place, startNew, open } = usePlace(sidebar.leaveDrawer)
  const { store, list } = useChats()
  const inbox = useRefreshed(useInbox(), store)
  const title = list.chats.find(({ id }) => id === place.id)?.title || texts.newChat
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
          connection={<OfflineMark />}
        >
          <MusicControl />
          <Inbox pending={inbox.pending} onChange={inbox.refresh} onOpenChat={open} />
          <SettingsMenu onShowShortcuts={() => setHelps(true)} />
        </TopBar>
        <OpenChat
          key={place.id}
          location={place}
          inbox={inbox}
          onNewChat={startNew}
          onSaid={(text) => store.begin(place.id, text)}
        />
      </div>
      <Panel panel={inspector} side="end" label={shell.inspector.title}>
        <Inspector chatId={place.id} onClose={() => inspector.setOpen(false)} />
      </Panel>
      <ShortcutsDialog open={helps} onClose={() => setHelps(false)} />
    </div>
  )
}

/** What changes the inbox changes the marks in the list of chats. */
function useRefreshed({ pending, refresh }: InboxState, store: ChatsStore): InboxState {
  return useMemo(
    () => ({
      pending,
      refresh: () => {
        refresh()
        void store.refresh()
      },
    }),
    [pending, refresh, store],
  )
}
