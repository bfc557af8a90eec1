import { useAttention } from 'adk-stream-protocol/react'
import { useState } from 'react'

import { ChatList } from './chats/chat-list.tsx'
import { focusComposer, INPUT_ID } from './composer/composer.tsx'
import { useLabels } from './i18n/language.tsx'
import { toggleInbox } from './inbox/inbox.tsx'
import { useApprovalsLocation } from './shell/location.ts'
import { inspection } from './inspector/inspection.ts'
import { useMode, useNotifications, useInspectorPanel, useSidebarPanel } from './settings.ts'
import { SlotContent } from './plugin/slot-content.tsx'
import { ShortcutsDialog } from './shell/dialogs.tsx'
import { focusNextApproval, type ShortcutActions, useShortcuts } from './shell/shortcuts.ts'
import { InspectorPanel } from './shell/inspector-panel.tsx'
import { Panel, type PanelState, usePanel } from './shell/panel.tsx'
import { MainArea } from './shell/main-area.tsx'
import { useWorkspace } from './shell/use-workspace.ts'
import { useStudio } from './wire/studio-info.ts'
import { useApplicationName } from './shell/application-name.ts'

const ROOM_FOR_SIDEBAR = '(width >= 60rem)'
const ROOM_FOR_INSPECTOR = '(width >= 80rem)'

/** The page: the list of chats, the conversation, and the inspector. */
export function App() {
  const labels = useLabels()
  const sidebar = usePanel(ROOM_FOR_SIDEBAR, useSidebarPanel())
  const inspector = usePanel(ROOM_FOR_INSPECTOR, useInspectorPanel())
  const hasInspector = useStudio()?.inspector !== false
  const [isHelpOpen, setHelpOpen] = useState(false)
  const [recording, setRecording] = useState<string>()
  const workspace = useWorkspace(sidebar.closeDrawer)
  const { location, list, store, open, startNew } = workspace
  const isApprovals = useApprovalsLocation().isOpen && recording === undefined
  const chatTitle = workspace.title || labels.newChat
  const title = isApprovals ? labels.shell.approvalsPage.title : chatTitle
  const application = useApplicationName()
  const showShortcuts = () => setHelpOpen(true)
  const replay = (chosen: string) => {
    inspector.closeDrawer()
    setRecording(chosen)
  }
  const [mode] = useMode()
  const [notifications] = useNotifications()
  const announcement = useAttention(workspace.inbox.approvals, {
    title: `${title} · ${application}`,
    hasMore: workspace.inbox.hasMore,
    notify: notifications === 'on',
    sound: mode === 'live',
    onOpen: ({ chatId }) => chatId !== undefined && open(chatId),
  })
  const actions = createActions({
    startNew,
    sidebar,
    inspector: hasInspector ? inspector : undefined,
    showShortcuts,
  })
  useShortcuts(actions)
  return (
    <div className="shell">
      <a className="skip-link" href={`#${INPUT_ID}`} onClick={focusInput}>
        {labels.skipToInput}
      </a>
      <Panel panel={sidebar} side="start" label={labels.shell.chats.label}>
        <ChatList
          {...{ list, store }}
          undecided={workspace.inbox.undecided}
          currentId={location.id}
          onOpen={open}
          onNewChat={startNew}
          onHide={() => sidebar.setOpen(false)}
          onDeleted={startNew}
        />
      </Panel>
      <MainArea
        {...{ workspace, title, sidebar, recording, isApprovals }}
        inspector={hasInspector ? inspector : undefined}
        onEndReplay={() => setRecording(undefined)}
        onShowShortcuts={showShortcuts}
      />
      {hasInspector && (
        <Panel panel={inspector} side="end" label={labels.shell.inspector.title}>
          <InspectorPanel
            chatId={location.id}
            agentName={list.chats.find(({ id }) => id === location.id)?.agent}
            onReplay={replay}
            onOpenChat={open}
            onSent={inspector.closeDrawer}
            onClose={() => inspector.setOpen(false)}
          />
        </Panel>
      )}
      {/* Approvals of all chats, also while their list is closed. */}
      <p className="visually-hidden" role="status">
        {announcement}
      </p>
      <SlotContent name="dialogs" />
      <ShortcutsDialog open={isHelpOpen} actions={actions} onClose={() => setHelpOpen(false)} />
    </div>
  )
}

interface ActionParts {
  readonly startNew: () => void
  readonly sidebar: PanelState
  /** Undefined if the page has no inspector. */
  readonly inspector: PanelState | undefined
  readonly showShortcuts: () => void
}

function createActions({
  startNew,
  sidebar,
  inspector,
  showShortcuts,
}: ActionParts): ShortcutActions {
  return {
    newChat: startNew,
    composer: focusComposer,
    chats: () => sidebar.setOpen(!sidebar.open),
    inbox: toggleInbox,
    nextApproval: () => void (focusNextApproval() || toggleInbox()),
    ...(inspector && {
      inspector: () => inspector.setOpen(!inspector.open),
      inspect: () => {
        inspector.setOpen(true)
        inspection.focusPlace()
      },
    }),
    help: showShortcuts,
  }
}

/** The link does not change the URL, which names the chat. */
function focusInput(event: { preventDefault(): void }): void {
  event.preventDefault()
  focusComposer()
}
