import { useState } from 'react'

import { ChatList } from './chats/chat-list.tsx'
import { focusComposer } from './composer/composer.tsx'
import { useTexts } from './i18n/language.tsx'
import { toggleInbox } from './inbox/inbox.tsx'
import { useInspectorPanel, useSidebarPanel } from './settings/panels.ts'
import { ApproverDialog } from './shell/approver-dialog.tsx'
import { focusNextApproval } from './shell/focus-next-approval.ts'
import { InspectorPanel } from './shell/inspector-panel.tsx'
import { Panel } from './shell/panel.tsx'
import { ShortcutsDialog } from './shell/shortcuts-dialog.tsx'
import { Stage } from './shell/stage.tsx'
import { useDesk } from './shell/use-desk.ts'
import { useDocumentTitle } from './shell/use-document-title.ts'
import { usePanel } from './shell/use-panel.ts'
import { useShortcuts } from './shell/use-shortcuts.ts'

const ROOM_FOR_SIDEBAR = '(width >= 60rem)'
const ROOM_FOR_INSPECTOR = '(width >= 80rem)'

/** The page: chats at the start, the conversation in the middle, what lies behind it at the end. */
export function App() {
  const texts = useTexts()
  const sidebar = usePanel(ROOM_FOR_SIDEBAR, useSidebarPanel())
  const inspector = usePanel(ROOM_FOR_INSPECTOR, useInspectorPanel())
  const [helps, setHelps] = useState(false)
  const [recording, setRecording] = useState<string>()
  const desk = useDesk(sidebar.leaveDrawer)
  const { place, list, store, open, startNew } = desk
  const title = desk.title || texts.newChat
  const showShortcuts = () => setHelps(true)
  const replay = (chosen: string) => {
    inspector.leaveDrawer()
    setRecording(chosen)
  }
  useDocumentTitle(`${title} · ${texts.title}`)
  useShortcuts({
    newChat: startNew,
    composer: focusComposer,
    chats: () => sidebar.setOpen(!sidebar.open),
    inbox: toggleInbox,
    nextApproval: () => void (focusNextApproval() || toggleInbox()),
    inspector: () => inspector.setOpen(!inspector.open),
    help: showShortcuts,
  })
  return (
    <div className="shell">
      <Panel panel={sidebar} side="start" label={texts.shell.chats.label}>
        <ChatList
          {...{ list, store }}
          currentId={place.id}
          onOpen={open}
          onNewChat={startNew}
          onHide={() => sidebar.setOpen(false)}
          onGone={startNew}
        />
      </Panel>
      <Stage
        {...{ desk, title, sidebar, inspector, recording }}
        onEndReplay={() => setRecording(undefined)}
        onShowShortcuts={showShortcuts}
      />
      <Panel panel={inspector} side="end" label={texts.shell.inspector.title}>
        <InspectorPanel
          chatId={place.id}
          onReplay={replay}
          onClose={() => inspector.setOpen(false)}
        />
      </Panel>
      <ApproverDialog />
      <ShortcutsDialog open={helps} onClose={() => setHelps(false)} />
    </div>
  )
}
