import { useConnection } from 'adk-stream-protocol/react'
import { X } from 'lucide-react'
import { lazy, Suspense, useSyncExternalStore } from 'react'

import { useLabels } from '../i18n/language.tsx'
import { storesChats, useMode } from '../settings/mode.ts'
import { shownChat } from '../wire/shown-chat.ts'
import { api, log, recorder, transports } from '../wire/wire.ts'

interface InspectorPanelProps {
  readonly chatId: string
  readonly onReplay: (recording: string) => void
  readonly onClose: () => void
}

// Loaded when the inspector is opened.
const Inspector = lazy(async () => {
  const loaded = await import('../inspector/inspector.tsx')
  return { default: loaded.Inspector }
})

/** The inspector and its header. */
export function InspectorPanel({ chatId, onReplay, onClose }: InspectorPanelProps) {
  const { inspector } = useLabels().shell
  return (
    <>
      <header className="panel-header">
        <h2>{inspector.title}</h2>
        <button
          type="button"
          className="icon-button"
          aria-label={inspector.hide}
          title={inspector.hide}
          onClick={onClose}
        >
          <X aria-hidden="true" />
        </button>
      </header>
      <div className="panel-body inspector-body">
        <Facts chatId={chatId} />
        <Suspense>
          <LiveInspector onReplay={onReplay} />
        </Suspense>
      </div>
    </>
  )
}

function Facts({ chatId }: { readonly chatId: string }) {
  const { inspector, mode: modes } = useLabels().shell
  const [mode] = useMode()
  return (
    <>
      <dl className="facts">
        <dt>{inspector.chat}</dt>
        <dd>
          <code>{chatId}</code>
        </dd>
        <dt>{inspector.mode}</dt>
        <dd>
          {modes.connections[mode]}
          <br />
          <span className="fine">{modes.explanations[mode]}</span>
        </dd>
      </dl>
      {storesChats(mode) && (
        <a
          href={`/chats/${encodeURIComponent(chatId)}/messages`}
          target="_blank"
          rel="noopener noreferrer"
        >
          {inspector.messages}
        </a>
      )}
    </>
  )
}

/** A component of its own, because it renders with every chunk. */
function LiveInspector({ onReplay }: Pick<InspectorPanelProps, 'onReplay'>) {
  const [mode] = useMode()
  const { messages, busy } = useSyncExternalStore(shownChat.subscribe, shownChat.read)
  const connection = useConnection(transports[mode])
  return <Inspector {...{ log, recorder, api, messages, busy, connection, onReplay }} />
}
