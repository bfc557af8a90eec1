import { useConnection } from 'adk-stream-protocol/react'
import { X } from 'lucide-react'
import { lazy, Suspense } from 'react'

import { IconButton } from '../icon-button.tsx'
import { useStudio } from '../wire/studio-info.ts'
import { api, log, newChatAgents, recorder, useTransport } from '../wire/wire.ts'
import { useLabels } from '../i18n/language.tsx'
import { messageRequests } from '../developer/message-requests.ts'
import { storesChats, useMode } from '../settings.ts'
import { useModeTexts } from './mode-switch.tsx'
import { createTariff } from '../inspector/cost.ts'
import { isReplying } from '../inspector/inspection.ts'
import { useValue } from '../observable-value.ts'

interface InspectorPanelProps {
  readonly chatId: string
  /** The name of the chat's agent, if the bridge has several. */
  readonly agentName: string | undefined
  readonly onReplay: (recording: string) => void
  readonly onOpenChat: (chatId: string) => void
  /** Called when the panel has sent a message. */
  readonly onSent: () => void
  readonly onClose: () => void
}

// Loaded when the inspector is opened.
const Inspector = lazy(async () => {
  const loaded = await import('../inspector/inspector.tsx')
  return { default: loaded.Inspector }
})

/** The inspector and its header. */
export function InspectorPanel({ onClose, ...props }: InspectorPanelProps) {
  const { chatId } = props
  const { inspector } = useLabels().shell
  return (
    <>
      <header className="panel-header">
        <h2>{inspector.title}</h2>
        <IconButton icon={X} label={inspector.hide} onClick={onClose} />
      </header>
      <div className="panel-body inspector-body">
        <Facts chatId={chatId} />
        <Suspense>
          <LiveInspector {...props} />
        </Suspense>
      </div>
    </>
  )
}

/** The chat and the connection, in one line. */
function Facts({ chatId }: { readonly chatId: string }) {
  const { inspector } = useLabels().shell
  const [mode] = useMode()
  const { connection, explanation } = useModeTexts()(mode)
  return (
    <p className="facts">
      <span title={explanation}>{connection}</span>
      <code title={chatId}>{chatId}</code>
      {storesChats(mode) && (
        <a
          href={`/chats/${encodeURIComponent(chatId)}/messages`}
          target="_blank"
          rel="noopener noreferrer"
        >
          {inspector.messages}
        </a>
      )}
    </p>
  )
}

/** The traffic and the record of the open chat. */
function LiveInspector({
  chatId,
  agentName,
  onReplay,
  onOpenChat,
  onSent,
}: Omit<InspectorPanelProps, 'onClose'>) {
  const [mode] = useMode()
  const busy = useValue(isReplying)
  const connection = useConnection(useTransport(mode))
  const stored = storesChats(mode) ? chatId : undefined
  const studio = useStudio()
  const agents = studio?.agents ?? []
  // A new chat has the agent that was chosen for it.
  const name = agentName ?? newChatAgents.get(chatId)
  const agent =
    stored === undefined ? undefined : (agents.find((each) => each.name === name) ?? agents[0])
  const model = mode === 'live' ? studio?.liveModel : studio?.model
  const tariff = createTariff(studio?.prices ?? {}, mode === 'live' ? undefined : agent, model)
  const onSend = (message: string): void => {
    messageRequests.send(message)
    onSent()
  }
  return (
    <Inspector
      {...{ log, recorder, api, busy, connection, tariff, onReplay, agent, onSend, onOpenChat }}
      isEmulated={studio?.emulated === true}
      hasSessions={studio?.sessions === true}
      chatId={stored}
    />
  )
}
