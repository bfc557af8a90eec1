import { X } from 'lucide-react'
import type { ReactNode } from 'react'

import { useTexts } from '../i18n/language.tsx'
import { useMode } from '../settings/mode.ts'

interface InspectorProps {
  readonly chatId: string
  readonly onClose: () => void
  /** Below what is known of the chat. */
  readonly children?: ReactNode
}

/** Looks behind the conversation. */
export function Inspector({ chatId, onClose, children }: InspectorProps) {
  const { inspector, mode: modes } = useTexts().shell
  const [mode] = useMode()
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
        <dl className="facts">
          <dt>{inspector.chat}</dt>
          <dd>
            <code>{chatId}</code>
          </dd>
          <dt>{inspector.mode}</dt>
          <dd>
            {modes.names[mode]}
            <br />
            <span className="fine">{modes.explanations[mode]}</span>
          </dd>
        </dl>
        <a
          href={`/chats/${encodeURIComponent(chatId)}/messages`}
          target="_blank"
          rel="noopener noreferrer"
        >
          {inspector.messages}
        </a>
        {children}
      </div>
    </>
  )
}
